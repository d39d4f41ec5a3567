"""The hash chain over one shim's events (D14). Pure; on the hot path, so hashlib only.

Each event carries `source.n` and `source.prev`, the chain's hash before it. What is chained is the
line without its preview text: `preview.hash` commits to the text, so the text may be dropped later,
from the journal or from the ledger, and the chain still holds.
"""

from hashlib import sha256

# Preview texts are the last member of their object and so of the line (contracts.events).
_ARGS_EVENT, _ARGS = b'{"type":"tool_call_start"', b'","args_preview":"'
_RESULT_EVENT, _RESULT = b'{"type":"tool_call_end"', b'","result_preview":"'
_TAIL = b'"}}}'
_HASH = b',"hash":"'
_HASH_BYTES = len(_HASH) + 64
_BACKSLASH = b"\\\\"
_QUOTE = b'\\"'


def seed(shim_id: str) -> bytes:
    """The `prev` of a shim's first event."""
    return sha256(b"subluminal-chain-v1:" + shim_id.encode()).hexdigest().encode()


def link(prev: bytes, chained: bytes) -> bytes:
    """The chain's hash after an event whose chained form is `chained`."""
    return sha256(prev + chained).hexdigest().encode()


def chained_form(line: bytes) -> bytes:
    """The line without its preview text; the line itself if it has none that may be dropped.

    Idempotent. A text without its hash is not droppable: nothing would commit to it.
    """
    place = preview_place(line)
    if place is None:
        # `sub secrets scan --rewrite` drops a text in place: spaces make up for it at the end.
        return line.rstrip(b" ")
    start, end = place
    return line[:start] + line[end:]


def preview_place(line: bytes) -> tuple[int, int] | None:
    """Where a droppable preview member begins (at its comma) and ends; None if there is none."""
    if line.startswith(_ARGS_EVENT):
        marker, tail_bytes = _ARGS, 4
    elif line.startswith(_RESULT_EVENT):
        marker, tail_bytes = _RESULT, 3
    else:
        return None
    at = line.rfind(marker)
    if at < _HASH_BYTES or not line.startswith(_HASH, at - _HASH_BYTES):
        return None
    text = line[at + len(marker) : -tail_bytes]
    if line[-tail_bytes:] != _TAIL[:tail_bytes] or b'"' in text.replace(_BACKSLASH, b"").replace(
        _QUOTE, b""
    ):
        # The names stood in someone's labels, and the preview itself has no text. (Without
        # escaped backslashes, a backslash before a quote escapes it; no other quote may be inside.)
        return None
    return at + 1, len(line) - tail_bytes + 1


def with_text(form: bytes, text_json: bytes) -> bytes:
    """A start's or an end's chained form with its preview text put back."""
    if form.startswith(_ARGS_EVENT):
        return form[:-3] + b',"args_preview":' + text_json + b"}}}"
    return form[:-2] + b',"result_preview":' + text_json + b"}}"


def preview_text_json(line: bytes) -> bytes | None:
    """The droppable preview text as a JSON string, quotes included."""
    place = preview_place(line)
    if place is None:
        return None
    start, end = place
    return line[line.index(b'":"', start) + 2 : end]
