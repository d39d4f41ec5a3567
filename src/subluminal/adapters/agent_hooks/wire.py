"""What a front and a hook shim send each other over the session's socket.

A front sends a header and the client's event, then closes its side. The hook shim answers with the
exit code, stdout and stderr of the front, byte for byte as the client will see them.
"""

_SEPARATOR = "\0"
MAX_HEADER_BYTES = 65_536
UNDECIDED = 255
"""The code of an answer that is not for the client: the front applies `--on-error`."""


class Header:
    """What the front knows about an event besides its text."""

    __slots__ = ("client", "cwd", "event")

    def __init__(self, client: str, event: str, cwd: str) -> None:
        self.client = client
        self.event = event
        """the event's name on the command line; empty if the client's JSON names it"""
        self.cwd = cwd
        """the directory in which the client runs its hooks"""


class Answer:
    """What the client gets from its hook."""

    __slots__ = ("code", "stderr", "stdout")

    def __init__(self, code: int = 0, stdout: bytes = b"", stderr: bytes = b"") -> None:
        self.code = code
        self.stdout = stdout
        self.stderr = stderr


def encode_header(header: Header) -> bytes:
    """Returns the bytes that go before the event."""
    words = (header.client, header.event, header.cwd)
    text = _SEPARATOR.join(words).encode("utf-8", "surrogateescape")
    return b"%d\n" % len(text) + text


def decode_request(data: bytes) -> "tuple[Header, bytes] | None":
    """Returns the header and the event; None if they were cut short, or no front sent them."""
    size, newline, _ = data[:16].partition(b"\n")
    if not newline or not size.isdigit() or int(size) > MAX_HEADER_BYTES:
        return None
    start = len(size) + 1
    end = start + int(size)
    words = data[start:end].decode("utf-8", "surrogateescape").split(_SEPARATOR)
    if len(data) < end or len(words) != 3:
        return None
    return Header(*words), data[end:]


def encode_answer(answer: Answer) -> bytes:
    """Returns an answer for the front."""
    sizes = b"%d %d %d\n" % (answer.code, len(answer.stdout), len(answer.stderr))
    return sizes + answer.stdout + answer.stderr


def decode_answer(data: bytes) -> "Answer | None":
    """Returns the hook shim's answer; None if it is incomplete, because the hook shim died."""
    sizes, newline, rest = data.partition(b"\n")
    words = sizes.split()
    if not newline or len(words) != 3 or not all(word.isdigit() for word in words):
        return None
    code, out, err = (int(word) for word in words)
    if len(rest) != out + err:
        return None
    return Answer(code, rest[:out], rest[out:])
