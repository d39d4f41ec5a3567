"""The table of processes as Linux shows it in /proc. `processes` chooses between this and `ps`."""

import os
import time

from subluminal.system.process import Process

PROC = "/proc"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def process(pid: int) -> Process | None:
    """Looks up one process. Returns None if it does not exist, or is hidden from us (hidepid)."""
    stat = _read(pid, "stat")
    if not stat:
        return None
    # The name is in parentheses and may itself contain spaces and parentheses.
    head, _, tail = stat.rpartition(b")")
    fields = tail.split()
    name = head.partition(b" (")[2]
    return Process(pid, name, fields[0], int(fields[1]), int(fields[2]), int(fields[19]))


def may_go_on(pid: int) -> bool:
    """Returns True if a thread of a process is runnable, or waits for a disk or for memory."""
    try:
        threads = os.listdir(f"{PROC}/{pid}/task")
    except OSError:
        return False
    found = (process(int(thread)) for thread in threads)
    return any(entry.is_runnable for entry in found if entry)


def table() -> dict[int, Process]:
    """Returns every process that is visible to us, by pid."""
    found = (process(pid) for pid in _pids())
    return {entry.pid: entry for entry in found if entry}


def descendants(root: int, spare: frozenset[int] = frozenset()) -> list[Process]:
    """Lists every process below `root`, zombies included, except `spare` and their descendants."""
    quick = os.path.exists(f"{PROC}/{root}/task/{root}/children")
    children_of = _children if quick else _all_children().get
    found: list[Process] = []
    todo = [root]
    while todo:
        for pid in children_of(todo.pop()) or ():
            entry = None if pid in spare else process(pid)
            if entry:
                found.append(entry)
                todo.append(pid)
    return found


def variables(name: bytes) -> dict[int, bytes]:
    """Returns the value of an environment variable in every process of this user that has it."""
    wanted = name + b"="
    found: dict[int, bytes] = {}
    for pid in _pids():
        environ = _read(pid, "environ")
        if wanted not in environ:
            continue
        for variable in environ.split(b"\0"):
            if variable.startswith(wanted):
                found[pid] = variable.removeprefix(wanted)
    return found


def command(pid: int) -> list[bytes]:
    """Returns the command line of one process; empty if it is gone or hidden."""
    return _read(pid, "cmdline").split(b"\0")[:-1]


def commands() -> dict[int, list[bytes]]:
    """Returns the command line of every process of this user."""
    own = os.geteuid()
    return {pid: command(pid) for pid in _pids() if _owner(pid) == own}


def born_at(entry: Process) -> float:
    """Returns when a process started, in seconds since 1970."""
    since_boot_s = entry.start / os.sysconf("SC_CLK_TCK")
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + since_boot_s


def boot_id() -> str:
    """Returns a short name of this boot: start times repeat after a boot."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read(8)
    except OSError:
        return "0"


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir(PROC) if name.isdigit()]
    except FileNotFoundError:
        return []


def _read(pid: int, name: str) -> bytes:
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


def _owner(pid: int) -> int | None:
    try:
        return os.stat(f"{PROC}/{pid}").st_uid
    except OSError:
        return None


def _children(pid: int) -> list[int]:
    """Lists the children of all threads of a process."""
    try:
        threads = os.listdir(f"{PROC}/{pid}/task")
    except OSError:
        return []
    return [int(c) for tid in threads for c in _read(pid, f"task/{tid}/children").split()]


def _all_children() -> dict[int, list[int]]:
    """Maps every parent to its children, for kernels without the `children` file."""
    found: dict[int, list[int]] = {}
    for entry in table().values():
        found.setdefault(entry.parent, []).append(entry.pid)
    return found
