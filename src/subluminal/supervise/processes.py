"""Reads processes from /proc. On a system without /proc, no process is found.

Supervision uses pids, names and parents only: command lines and environments can contain secrets
(unprintable-secrets).
"""

import os

PROC = "/proc"


class Process:
    """The fields of /proc/PID/stat that supervision needs."""

    __slots__ = ("group", "name", "parent", "pid", "start_ticks", "state")

    def __init__(self, stat: bytes) -> None:
        # The name is in parentheses and may itself contain spaces and parentheses.
        head, _, tail = stat.rpartition(b")")
        pid, _, name = head.partition(b" (")
        fields = tail.split()
        self.pid = int(pid)
        self.name = "".join(c if c.isprintable() else "?" for c in os.fsdecode(name))
        self.state = fields[0].decode()
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.start_ticks = int(fields[19])

    @property
    def is_dead(self) -> bool:
        """True for a zombie, which only waits for its parent to reap it."""
        return self.state in ("Z", "X")


def process(pid: int) -> Process | None:
    """Looks up one process. Returns None if it does not exist."""
    stat = read(pid, "stat")
    return Process(stat) if stat else None


def descendants(root: int, spare: frozenset[int] = frozenset()) -> list[Process]:
    """Lists every process below `root`, zombies included, except `spare` and their descendants.

    A process may be forked meanwhile: a caller that needs all of them repeats the call until no new
    one appears.
    """
    quick = os.path.exists(f"{PROC}/{root}/task/{root}/children")
    children_of = _children if quick else _table().get
    found: list[Process] = []
    todo = [root]
    while todo:
        for pid in children_of(todo.pop()) or ():
            entry = None if pid in spare else process(pid)
            if entry:
                found.append(entry)
                todo.append(pid)
    return found


def pids() -> list[int]:
    """Lists every process of the machine; empty on a system without /proc."""
    try:
        return [int(name) for name in os.listdir(PROC) if name.isdigit()]
    except FileNotFoundError:
        return []


def read(pid: int, name: str) -> bytes:
    """Reads one file of a process; empty if the process is gone or the file may not be read."""
    try:
        fd = os.open(f"{PROC}/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    chunks: list[bytes] = []
    try:
        while chunk := os.read(fd, 65536):
            chunks.append(chunk)
    except OSError:
        pass  # the process died between open and read
    finally:
        os.close(fd)
    return b"".join(chunks)


def _children(pid: int) -> list[int]:
    """Lists the children of all threads of a process."""
    try:
        threads = os.listdir(f"{PROC}/{pid}/task")
    except OSError:
        return []
    return [int(c) for tid in threads for c in read(pid, f"task/{tid}/children").split()]


def _table() -> dict[int, list[int]]:
    """Maps every parent to its children, for kernels without the `children` file."""
    table: dict[int, list[int]] = {}
    for pid in pids():
        entry = process(pid)
        if entry:
            table.setdefault(entry.parent, []).append(pid)
    return table
