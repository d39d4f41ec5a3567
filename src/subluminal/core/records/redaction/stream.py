"""Redacts a stream of bytes as it comes: the stderr of upstream servers that we log.

Holds back as much as a secret can need to show itself, so that one split across chunks is caught.
Bounded: never keeps more than MAX_HELD_BYTES, whatever arrives.
"""

from subluminal.core.records.redaction.matching import Hit, TooManyHits, after_open_hits
from subluminal.core.records.redaction.redactor import TOO_MANY, Redactor

MAX_HELD_BYTES = 262_144
"""A match that is still growing at this size is masked as it stands: no key is that long."""


class StreamRedactor:
    """One stream. `names` collects what was masked."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._hold = min(redactor.hold_back_bytes, MAX_HELD_BYTES // 2)
        self._held = b""
        self.names: set[str] = set()

    def feed(self, data: bytes) -> bytes:
        """Takes the next bytes; returns what can be written by now."""
        self._held += data
        ready = len(self._held) - self._hold
        return self._release(ready) if ready > 0 else b""

    def finish(self) -> bytes:
        """Returns the rest. The stream has ended."""
        return self._release(len(self._held))

    def _release(self, ready: int) -> bytes:
        held = self._held
        try:
            hits = self._redactor.find(held)
        except TooManyHits:
            self._held = b""
            self.names.add(TOO_MANY)
            return b"[REDACTED:%b]\n" % TOO_MANY.encode()
        if len(held) <= MAX_HELD_BYTES:
            ready = _before_open_hits(hits, ready, len(held))
        else:
            ready = after_open_hits(hits, ready)
        out = [hit for hit in hits if hit.end <= ready]
        self.names.update(self._redactor.names_of(out))
        self._held = held[ready:]
        return self._redactor.mask(held[:ready], out)


def _before_open_hits(hits: list[Hit], ready: int, length: int) -> int:
    """Moves the cut before any hit that lies across it, unless the stream has ended."""
    if ready == length:
        return ready
    for hit in reversed(hits):
        if hit.start < ready < hit.end:
            ready = hit.start
    return ready
