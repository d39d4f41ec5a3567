"""The hash chain over one shim's events (provable-ledger). Pure; on the hot path, so hashlib only.

Each event carries `source.n` and `source.prev`, the chain's hash before it. What is chained is the
line without its preview text: `preview.hash` commits to the text, so the text may be dropped later,
from the journal or from the ledger, and the chain still holds.
"""

from hashlib import sha256

# Preview texts are the last member of their object and so of the line (contracts.events).
_ARGS_EVENT, _ARGS = b'{"type":"tool_call_start"', b'","args_preview":"'
_RESULT_EVENT, _RESULT = b'{"type":"tool_call_end"', b'","result_preview":"'
_HASH = b',"hash":"'
_HASH_BYTES = len(_HASH) + 64
_ARGS_BYTES, _RESULT_BYTES = len(_ARGS), len(_RESULT)
_BACKSLASH, _QUOTE = b'\\"'


def seed(shim_id: str) -> bytes:
    """The `prev` of a shim's first event."""
    return sha256(b"subluminal-chain-v1:" + shim_id.encode()).hexdigest().encode()


def link(prev: bytes, chained: bytes) -> bytes:
    """The chain's hash after an event whose chained form is `chained`."""
    return sha256(prev + chained).hexdigest().encode()


def chained_form(line: bytes) -> bytes:
    """The line without its preview text; the line itself if it has none that may be dropped.

    Idempotent. A text without its hash is not droppable: nothing would commit to it. Spaces at the
    end stand where a text was dropped in place (`sub secrets scan`).
    """
    return chained_start(line) if line.startswith(_ARGS_EVENT) else chained_end(line)


def chained_start(line: bytes) -> bytes:
    """As `chained_form`, of a line that can only be a tool_call_start."""
    if not line.startswith(_ARGS_EVENT):
        return line
    at = line.find(_ARGS)
    start = at + _ARGS_BYTES
    # Nearly always the first one is it: nothing else is looked at then.
    if at > _HASH_BYTES and line.endswith(b'"}}}', start) and _is_preview(line, at, start, -4):
        return line[: at + 1] + b"}}}"
    return _without_text(line, _ARGS, b'"}}}', b"}}}")


def chained_end(line: bytes) -> bytes:
    """As `chained_form`, of a line that cannot be a tool_call_start."""
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
            # From its comma on; the quote before that ends the hash.
            return line[: at + 1] + brackets
        # These names stood in someone's labels.
        at = line.find(marker, start)
    return line


def _is_preview(line: bytes, at: int, start: int, end: int) -> bool:
    """Whether a hash stands before the text, and no quote ends the text before its last one."""
    if not line.startswith(_HASH, at - _HASH_BYTES):
        return False
    inside = line[start:end]
    # By number: looking for a bytes object raises and swallows an exception inside of Python.
    if _BACKSLASH not in inside:
        return _QUOTE not in inside
    if b"\\\\" in inside:
        # Escaped backslashes first: what is left of a backslash before a quote then escapes it.
        inside = inside.replace(b"\\\\", b"")
    return inside.count(b'"') == inside.count(b'\\"')


def preview_place(line: bytes) -> tuple[int, int] | None:
    """Where a droppable preview member begins (at its comma) and ends; None if there is none."""
    form = chained_form(line)
    end = len(line.rstrip(b" "))
    if len(form) >= end:
        return None
    brackets = 3 if line.startswith(_ARGS_EVENT) else 2
    return len(form) - brackets, end - brackets


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
