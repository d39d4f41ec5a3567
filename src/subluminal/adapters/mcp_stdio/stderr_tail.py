"""The end of a server's standard error: the line that tells why a server failed."""

_KEPT_BYTES = 8_192
"""Enough for the error and its traceback; a line that is longer than this is not shown."""
_NOISE = (b"Node.js v",)
"""Lines that a runtime prints after every error."""


class StderrTail:
    """Keeps the last bytes that a server wrote to stderr."""

    def __init__(self) -> None:
        self._kept = b""

    def feed(self, data: bytes) -> None:
        """Adds what the server wrote."""
        self._kept = (self._kept + data[-_KEPT_BYTES:])[-_KEPT_BYTES:]

    def line(self) -> str:
        """Returns the last line that is not part of a traceback; empty if there is none.

        Lines of a traceback are indented. The error stands before (Node) or after them (Python).
        """
        lines = self._kept.splitlines()
        if len(self._kept) == _KEPT_BYTES:
            del lines[:1]  # its beginning is missing, so a secret in it may not be recognised
        told = [line for line in lines if any(chr(byte).isalnum() for byte in line)]
        plain = [line for line in told if line[:1].strip() and not line.startswith(_NOISE)]
        found = (plain or told)[-1:]
        return found[0].decode("utf-8", "replace").strip() if found else ""
