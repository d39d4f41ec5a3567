"""The hash chain over one shim's events (D14). Pure; on the hot path, so hashlib only.

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
    if line.startswith(_ARGS_EVENT):
        marker, tail, brackets = _ARGS, b'"}}}', b"}}}"
    elif line.startswith(_RESULT_EVENT):
        marker, tail, brackets = _RESULT, b'"}}', b"}}"
    else:
        return line
    if line.endswith(b" "):
        line = line.rstrip(b" ")
    at = line.find(marker)
    while at >= 0:
        start = at + len(marker)
        if (
            line.endswith(tail, start)
            and line.startswith(_HASH, max(0, at - _HASH_BYTES))
            and _is_one_string(line[start : -len(tail)])
        ):
            # From its comma on; the quote before that ends the hash.
            return line[: at + 1] + brackets
        # These names stood in someone's labels.
        at = line.find(marker, start)
    return line


def preview_place(line: bytes) -> tuple[int, int] | None:
    """Where a droppable preview member begins (at its comma) and ends; None if there is none."""
    form = chained_form(line)
    end = len(line.rstrip(b" "))
    if len(form) >= end:
        return None
    brackets = 3 if line.startswith(_ARGS_EVENT) else 2
    return len(form) - brackets, end - brackets


def _is_one_string(inside: bytes) -> bool:
    """Whether no quote ends the JSON string before its last one."""
    # By number: looking for a bytes object raises and swallows an exception inside of Python.
    if _BACKSLASH not in inside:
        return _QUOTE not in inside
    # Escaped backslashes first: what is left of a backslash before a quote then escapes it.
    return _QUOTE not in inside.replace(b"\\\\", b"").replace(b'\\"', b"")


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
