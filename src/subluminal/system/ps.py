"""The table of processes as ps(1) prints it, for systems without /proc, such as macOS.

One run takes about 10 ms, so nothing here belongs on the path of a call. `processes` chooses
between this and `proc`.
"""

import os
import sys

from subluminal.system.process import Process, below, exists

_PROGRAMS = ("/bin/ps", "/usr/bin/ps")
_COLUMNS = ("pid", "ppid", "pgid", "uid", "stat", "lstart")
_FIELDS = 10
"""Words that `_COLUMNS` prints: `lstart` alone is five, as in `Sun Nov  1 09:30:00 2026`."""
_MONTHS = b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
# `e` prints environments too. Apple's ps has another letter for it.
_WITH_ENVIRONMENT = "-axEww" if sys.platform == "darwin" else "axeww"


class _Row:
    """One line of output: the process, its owner, and the text of the last column."""

    __slots__ = ("entry", "text", "uid")

    def __init__(self, line: bytes) -> None:
        """Reads a line. Raises ValueError if it is not one of ours."""
        *fields, self.text = (line + b" ").split(None, _FIELDS)
        if len(fields) < _FIELDS:
            raise ValueError
        pid, parent, group, self.uid = (int(field) for field in fields[:4])
        # The program may be a path, and its arguments may follow.
        name = os.path.basename(self.text.split(b" ")[0])
        self.entry = Process(pid, name, fields[4], parent, group, _seconds(fields[5:]))


def process(pid: int) -> Process | None:
    """Looks up one process. Returns None if it does not exist."""
    if pid == os.getpid():
        return _own()
    return table().get(pid) if exists(pid) else None


def may_go_on(pid: int) -> bool:
    """Returns True if a process is runnable, or waits for a disk or for memory."""
    found = process(pid)
    return found is not None and found.is_runnable


def table() -> dict[int, Process]:
    """Returns every process, by pid."""
    found: dict[int, Process] = {}
    for row in _rows("-axww", "comm"):
        # A name may contain spaces here, because nothing follows it.
        row.entry.name = os.fsdecode(os.path.basename(row.text.strip()))
        found[row.entry.pid] = row.entry
    return found


def descendants(root: int, spare: frozenset[int] = frozenset()) -> list[Process]:
    """Lists every process below `root`, zombies included, except `spare` and their descendants."""
    return below({root}, table(), spare)


def variables(name: bytes) -> dict[int, bytes]:
    """Returns the value of an environment variable in every process of this user that has it.

    macOS does not show the environment of the programs that belong to the system.
    """
    wanted, own = b" " + name + b"=", os.geteuid()
    found: dict[int, bytes] = {}
    for row in _rows(_WITH_ENVIRONMENT, "command"):
        if row.uid == own and wanted in row.text:
            # Arguments come first, and an argument may look like a variable.
            found[row.entry.pid] = row.text.rpartition(wanted)[2].split(b" ")[0]
    return found


def command(pid: int) -> list[bytes]:
    """Returns the command line of one process of this user; empty if it is gone."""
    return commands().get(pid, [])


def commands() -> dict[int, list[bytes]]:
    """Returns the command line of every process of this user, split at spaces."""
    own = os.geteuid()
    return {row.entry.pid: row.text.split() for row in _rows("-axww", "command") if row.uid == own}


def born_at(entry: Process) -> float:
    """Returns when a process started, in seconds since 1970."""
    return float(entry.start)


def boot_id() -> str:
    """Returns a short name of this boot: the same for all, because start times do not repeat."""
    return "0"


_known: list[Process] = []


def _own() -> Process:
    """Returns this process. Its start is asked for once: every run that it enters needs it."""
    if not _known or _known[0].pid != os.getpid():
        pid = os.getpid()
        _known[:] = [table().get(pid) or Process(pid, b"", b"R", os.getppid(), os.getpgrp(), 0)]
    return _known[0]


def _rows(flags: str, last: str) -> list[_Row]:
    rows: list[_Row] = []
    # One option for each column: in POSIX, everything after `=` is the column's title.
    columns = [word for column in (*_COLUMNS, last) for word in ("-o", f"{column}=")]
    own, output = _run([flags, *columns])
    for line in output.splitlines():
        try:
            row = _Row(line)
        except ValueError:
            continue  # the rest of a text with line breaks
        if row.entry.pid != own:
            rows.append(row)
    return rows


def _run(arguments: list[str]) -> tuple[int, bytes]:
    """Runs ps. Returns its pid and its output; no output if there is no ps."""
    program = next((path for path in _PROGRAMS if os.path.exists(path)), "")
    if not program:
        return 0, b""
    read_end, write_end = os.pipe()
    try:
        pid = os.posix_spawn(
            program,
            ["ps", *arguments],
            {"LC_ALL": "C", "TZ": "UTC0"},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, write_end, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
    except OSError:
        os.close(read_end)
        return 0, b""
    finally:
        os.close(write_end)
    chunks: list[bytes] = []
    while chunk := os.read(read_end, 65536):
        chunks.append(chunk)
    os.close(read_end)
    _reap(pid)
    return pid, b"".join(chunks)


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        return  # this process ignores SIGCHLD, or collects every child that ends


def _seconds(lstart: list[bytes]) -> int:
    """Reads a time such as `Sun Nov  1 09:30:00 2026`, in UTC, as seconds since 1970."""
    _, month, day, clock, year = lstart
    hour, minute, second = (int(part) for part in clock.split(b":"))
    return days_before(int(year), _MONTHS.index(month) + 1, int(day)) * 86_400 + (
        hour * 3600 + minute * 60 + second
    )


def days_before(year: int, month: int, day: int) -> int:
    """Returns the number of days from 1970-01-01 to a date, without the import of `calendar`."""
    # March is the first month here, so that a leap day is the last day of a year.
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1
    return days - 719_468
