"""What /proc says about processes. Reads only; on a system without /proc there is nothing to see.

Never reads a command line or an environment here: both can hold secrets (unprintable-secrets).
"""

import os

PROC = "/proc"


class Process:
    """One line of /proc/PID/stat, as far as supervision needs it."""

    __slots__ = ("group", "name", "parent", "pid", "start_ticks", "state")

    def __init__(self, stat: bytes) -> None:
        # The name is in parentheses and may itself hold spaces and parentheses.
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
        """Whether it only waits for its parent to collect it."""
        return self.state in ("Z", "X")


def process(pid: int) -> Process | None:
    """Looks one process up; None when there is no such process."""
    stat = read(pid, "stat")
    return Process(stat) if stat else None


def descendants(root: int, spare: frozenset[int] = frozenset()) -> list[Process]:
    """Every process below `root`, zombies included, without the spared ones and theirs.

    A process may be born while we look: who needs all of them asks again until nothing is new.
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
    """Every process on the machine; none where there is no /proc."""
    try:
        return [int(name) for name in os.listdir(PROC) if name.isdigit()]
    except FileNotFoundError:
        return []


def read(pid: int, name: str) -> bytes:
    """Reads one file of a process; empty when it is gone or not ours to read."""
    try:
        fd = os.open(f"{PROC}/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    chunks: list[bytes] = []
    try:
        while chunk := os.read(fd, 65536):
            chunks.append(chunk)
    except OSError:
        pass  # it died between open and read
    finally:
        os.close(fd)
    return b"".join(chunks)


def _children(pid: int) -> list[int]:
    """The children of all threads of a process."""
    try:
        threads = os.listdir(f"{PROC}/{pid}/task")
    except OSError:
        return []
    return [int(c) for tid in threads for c in read(pid, f"task/{tid}/children").split()]


def _table() -> dict[int, list[int]]:
    """Parent to children for the whole machine: for kernels without the `children` file."""
    table: dict[int, list[int]] = {}
    for pid in pids():
        entry = process(pid)
        if entry:
            table.setdefault(entry.parent, []).append(pid)
    return table
