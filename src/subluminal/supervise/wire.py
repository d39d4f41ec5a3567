"""The messages between shim and warden, and their bytes: orders one way, reports the other.

A frame is a length of eight bytes, big-endian, followed by that many bytes. Its fields are joined
by NUL, the one byte that no argument, variable or path can contain. No I/O here.
"""

import os

SPAWNED = "spawned"
FAILED = "failed"
EXITED = "exited"
KILLED = "killed"
GONE = "gone"

_LENGTH_BYTES = 8


class Report(tuple[str, int, int | None, int | None, str]):
    """An event in the life of the tree. A NamedTuple by hand, to save the import of `typing`."""

    __slots__ = ()

    def __new__(
        cls,
        kind: str,
        pid: int,
        exit_code: int | None = None,
        signal: int | None = None,
        detail: str = "",
    ) -> "Report":
        """Makes a report. `exited` has an exit code or a signal, `failed` a shell's exit code."""
        return super().__new__(cls, (kind, pid, exit_code, signal, detail))

    @property
    def kind(self) -> str:
        """`spawned`, `failed`, `exited`, `killed` or `gone`."""
        return self[0]

    @property
    def pid(self) -> int:
        """Pid of the process that the report is about; 0 if the upstream never started."""
        return self[1]

    @property
    def exit_code(self) -> int | None:
        """Exit code of an upstream that was not ended by a signal."""
        return self[2]

    @property
    def signal(self) -> int | None:
        """The signal that ended the upstream (`exited`) or that was sent (`killed`)."""
        return self[3]

    @property
    def detail(self) -> str:
        """One line for people. It contains no arguments and no environment, so no secrets."""
        return self[4]

    def __repr__(self) -> str:
        return f"Report{tuple(self)!r}"


class Spawn:
    """Order: start the upstream."""

    __slots__ = ("after_death", "argv", "cwd", "env", "grace_ms")

    def __init__(
        self,
        argv: list[bytes],
        env: dict[bytes, bytes],
        cwd: bytes,
        grace_ms: int,
        after_death: list[bytes],
    ) -> None:
        self.argv = argv
        self.env = env
        self.cwd = cwd
        """Working directory; empty for the shim's own."""
        self.grace_ms = grace_ms
        self.after_death = after_death


class Stop:
    """Order: end the tree. The shim has journalled all it knows, so `after_death` is not run."""

    __slots__ = ("grace_ms",)

    def __init__(self, grace_ms: int | None) -> None:
        self.grace_ms = grace_ms


class Signal:
    """Order: pass a signal on to the upstream's process group."""

    __slots__ = ("signum",)

    def __init__(self, signum: int) -> None:
        self.signum = signum


Order = Spawn | Stop | Signal


class Frames:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Adds bytes that were read. Returns the frames that are complete now."""
        self._buffer += data
        complete: list[bytes] = []
        while len(self._buffer) >= _LENGTH_BYTES:
            end = _LENGTH_BYTES + int.from_bytes(self._buffer[:_LENGTH_BYTES], "big")
            if len(self._buffer) < end:
                break
            complete.append(bytes(self._buffer[_LENGTH_BYTES:end]))
            del self._buffer[:end]
        return complete


def encode_order(order: Order) -> bytes:
    """Encodes an order. Raises ValueError if an argument or a variable contains a NUL byte."""
    if isinstance(order, Stop):
        return _frame([b"stop", b"" if order.grace_ms is None else b"%d" % order.grace_ms])
    if isinstance(order, Signal):
        return _frame([b"signal", b"%d" % order.signum])
    head = [b"spawn", b"%d" % order.grace_ms, order.cwd]
    argv = [b"%d" % len(order.argv), *order.argv]
    after = [b"%d" % len(order.after_death), *order.after_death]
    return _frame([*head, *argv, *after, *(b"%s=%s" % pair for pair in order.env.items())])


def decode_order(frame: bytes) -> Order:
    """Decodes an order."""
    kind, *fields = frame.split(b"\0")
    if kind == b"stop":
        return Stop(int(fields[0]) if fields[0] else None)
    if kind == b"signal":
        return Signal(int(fields[0]))
    grace_ms, cwd, *rest = fields
    argv, rest = _counted(rest)
    after_death, rest = _counted(rest)
    env = {name: value for name, _, value in (pair.partition(b"=") for pair in rest)}
    return Spawn(argv, env, cwd, int(grace_ms), after_death)


def encode_report(report: Report) -> bytes:
    """Encodes a report."""
    return _frame(["" if field is None else str(field) for field in report])


def decode_report(frame: bytes) -> Report:
    """Decodes a report."""
    kind, pid, exit_code, signal, detail = os.fsdecode(frame).split("\0")
    return Report(kind, int(pid), _maybe_int(exit_code), _maybe_int(signal), detail)


def _frame(fields: list[bytes] | list[str]) -> bytes:
    payload = b"\0".join(os.fsencode(field) for field in fields)
    if payload.count(b"\0") != len(fields) - 1:
        raise ValueError("a NUL byte cannot be part of an argument, a variable or a path")
    return len(payload).to_bytes(_LENGTH_BYTES, "big") + payload


def _counted(fields: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    end = 1 + int(fields[0])
    return fields[1:end], fields[end:]


def _maybe_int(text: str) -> int | None:
    return int(text) if text else None
