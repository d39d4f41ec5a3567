"""The hash chain over the events of one shim (provable-ledger).

    prev(1)     = a seal of this home (`seals`), or SHA-256("subluminal-chain-v1:" + shim_id) where
                  no key was at hand, as in journals of early versions             `seed`
    prev(n + 1) = SHA-256(prev(n) + chained form of event n)     `link`

All hashes are written in hex. Event n carries its number in `source.n` and prev(n) in
`source.prev`. So a change of event n shows in event n + 1, and no event can be removed, added or
moved without rewriting every event after it.

*What is chained.* The line as it stands in the journal, without its newline and without its
preview text: its *chained form*. The hash of the preview text (`preview.hash`) is part of it.

*What may be dropped.* Only a preview text whose hash stands before it. A writer drops it when the
disk is full, the ledger when it gets old, `sub secrets scan` when it holds a secret. The chained
form, and so the chain, stays the same. A text without its hash may not be dropped, because nothing
would show what it was.

*How a verifier proceeds* (`verifying`). It begins with prev(1) and takes the lines by number. For
each one it checks the shim, `n` and `prev`, and that a preview text that is still there has the
hash that the line names; then it computes the next `prev`. No later event proves the last one: that
takes the chain's last hash from outside, from a signed checkpoint or an artifact.

The functions are pure, and on the path of every call: they cut bytes instead of parsing JSON. That
is sound because `contracts.events` writes `type` as the first member of a line and the preview text
as the last.
"""

from hashlib import sha256

_ARGS_EVENT, _ARGS = b'{"type":"tool_call_start"', b'","args_preview":"'
_RESULT_EVENT, _RESULT = b'{"type":"tool_call_end"', b'","result_preview":"'
_HASH = b',"hash":"'
_HASH_BYTES = len(_HASH) + 64
_ARGS_BYTES, _RESULT_BYTES = len(_ARGS), len(_RESULT)
_BACKSLASH, _QUOTE = b'\\"'


def seed(shim_id: str) -> bytes:
    """Returns the `prev` of a shim's first event."""
    return sha256(b"subluminal-chain-v1:" + shim_id.encode()).hexdigest().encode()


def link(prev: bytes, chained: bytes) -> bytes:
    """Returns the chain's hash after an event, from the hash before it and its chained form."""
    return sha256(prev + chained).hexdigest().encode()


def chained_form(line: bytes) -> bytes:
    """Returns the line without its preview text, or the line itself if no text may be dropped.

    Idempotent. Spaces at the end of the line are ignored: `sub secrets scan` leaves them when it
    drops a text in place.
    """
    return chained_start(line) if line.startswith(_ARGS_EVENT) else chained_end(line)


def chained_start(line: bytes) -> bytes:
    """Does what `chained_form` does, for a line that is not a tool_call_end."""
    if not line.startswith(_ARGS_EVENT):
        return line
    at = line.find(_ARGS)
    start = at + _ARGS_BYTES
    # The first match nearly always is the preview, and then nothing else is searched.
    if at > _HASH_BYTES and line.endswith(b'"}}}', start) and _is_preview(line, at, start, -4):
        return line[: at + 1] + b"}}}"
    return _without_text(line, _ARGS, b'"}}}', b"}}}")


def chained_end(line: bytes) -> bytes:
    """Does what `chained_form` does, for a line that is not a tool_call_start."""
    if not line.startswith(_RESULT_EVENT):
        return line
    at = line.find(_RESULT)
    start = at + _RESULT_BYTES
    if at > _HASH_BYTES and line.endswith(b'"}}', start) and _is_preview(line, at, start, -3):
        return line[: at + 1] + b"}}"
    return _without_text(line, _RESULT, b'"}}', b"}}")


def _without_text(line: bytes, marker: bytes, tail: bytes, brackets: bytes) -> bytes:
    if line.endswith(b" "):
        line = line.rstrip(b" ")
    at = line.find(marker)
    while at >= 0:
        start = at + len(marker)
        if (
            at > _HASH_BYTES
            and line.endswith(tail, start)
            and _is_preview(line, at, start, -len(tail))
        ):
            # Cut from the comma on; the quote before it ends the hash.
            return line[: at + 1] + brackets
        # The same bytes occurred earlier in the line, in a label for example.
        at = line.find(marker, start)
    return line


def _is_preview(line: bytes, at: int, start: int, end: int) -> bool:
    """Whether a hash stands before the text, and no quote ends the text before the last quote."""
    if not line.startswith(_HASH, at - _HASH_BYTES):
        return False
    inside = line[start:end]
    # Search for integers: a search for bytes raises and discards an exception inside Python.
    if _BACKSLASH not in inside:
        return _QUOTE not in inside
    if b"\\\\" in inside:
        # Without escaped backslashes, every backslash before a quote escapes that quote.
        inside = inside.replace(b"\\\\", b"")
    return inside.count(b'"') == inside.count(b'\\"')


def preview_place(line: bytes) -> tuple[int, int] | None:
    """Returns start (at the comma) and end of the preview text that may be dropped, or None."""
    form = chained_form(line)
    end = len(line.rstrip(b" "))
    if len(form) >= end:
        return None
    brackets = 3 if line.startswith(_ARGS_EVENT) else 2
    return len(form) - brackets, end - brackets


def with_text(form: bytes, text_json: bytes) -> bytes:
    """Puts the preview text back into the chained form of a tool_call_start or tool_call_end."""
    if form.startswith(_ARGS_EVENT):
        return form[:-3] + b',"args_preview":' + text_json + b"}}}"
    return form[:-2] + b',"result_preview":' + text_json + b"}}"


def preview_text_json(line: bytes) -> bytes | None:
    """Returns the preview text that may be dropped, as a JSON string with its quotes, or None."""
    place = preview_place(line)
    if place is None:
        return None
    start, end = place
    return line[line.index(b'":"', start) + 2 : end]
