"""Seals a journal with a key that only this home has (provable-ledger).

    beginning   stands in `source.prev` of a shim's first event, where an unsealed journal has
                `chain.seed`. It shows that a process of this home began the journal.
    sealed      puts a seal into `source.seal` of an event. It covers the event and its `prev`, and
                so everything before: none of it can be changed without the key.

Both are HMAC-SHA256 in hex. Sealed are the events of SEALED, among them the first of a run, and the
last of every journal that was closed in order. Pure, and loaded by every shim: nothing heavier than
hmac.
"""

import hmac

SEALED = frozenset(["run_start", "run_end", "shim_health", "approval_decided", "kill_switch"])
"""Types of the events that are sealed in a sealed journal. None is on the path of a call."""

_BEGINNING = b"subluminal-journal-v1\0"
_EVENT = b"subluminal-event-v1\0"


def beginning(key: bytes, run_id: str, shim_id: str) -> bytes:
    """Returns the `prev` of the first event of a shim's sealed journal."""
    text = f"{run_id}\0{shim_id}".encode("utf-8", "surrogatepass")
    return _mac(key, _BEGINNING + text)


def sealed(key: bytes, line: bytes, prev: bytes) -> bytes:
    """Returns an event, which has no seal yet, with its seal. `prev` is the event's own."""
    place = b'"prev":"%b"' % prev
    # The first match is in `source`: inside of a text, its quotes would be escaped.
    return line.replace(place, b'%b,"seal":"%b"' % (place, _mac(key, _EVENT + line)), 1)


def has_seal_of(key: bytes, line: bytes, prev: bytes, seal: bytes) -> bool:
    """Whether the seal of an event was made with this key, for this event and its `prev`."""
    place = b'"prev":"%b"' % prev
    bare = line.replace(b'%b,"seal":"%b"' % (place, seal), place, 1)
    return hmac.compare_digest(_mac(key, _EVENT + bare), seal)


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256").hex().encode()
