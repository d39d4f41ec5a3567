"""Notes on disk which runs a process takes part in, so that others can close them if it dies.

Each host has one small file under `$SUB_HOME/state/processes`: `PID`, or `PID-OWNER` in a process
that may have several hosts. An orderly end removes it.
"""

import os

import msgspec
from msgspec import Struct

from subluminal.config.places import Places, make_private_dir
from subluminal.config.plain_files import plain_file
from subluminal.config.private_files import write_aside
from subluminal.contracts.identity import Identity, Source
from subluminal.state.processes import start_time


class Attendance(Struct, frozen=True):
    """The fact that one process takes part in one run."""

    run_id: str
    identity: Identity
    source: Source


_decode = msgspec.json.Decoder(Attendance).decode

_MAX_NOTE_BYTES = 1 << 24
"""Most bytes of a file that are read: enough for 30,000 runs of one process."""


def note_attendance(places: Places, pid: int, attendance: Attendance, owner: str = "") -> None:
    """Notes that a process takes part in a run.

    On a full disk nothing is noted. If the process then dies, nobody can close its run.
    """
    path = _path(places, pid, owner)
    try:
        make_private_dir(os.path.dirname(path))
        # O_NONBLOCK: a pipe in place of the file must not make us wait.
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o600)
    except OSError:
        return
    try:
        # The line before may have been torn by a full disk.
        os.write(fd, b"\n" + msgspec.json.encode(attendance) + b"\n")
    except OSError:
        return
    finally:
        os.close(fd)


def keep_attendance(places: Places, pid: int, kept: list[Attendance], owner: str = "") -> None:
    """Replaces the note of a host, which has left some of its runs, by one about the others."""
    path = _path(places, pid, owner)
    if not kept:
        _remove(path)
        return
    try:
        aside = write_aside(path, b"\n".join(map(msgspec.json.encode, kept)) + b"\n")
        os.replace(aside, path)
    except OSError:
        return  # the note names more runs than it has to; their record says that they are over


def forget_attendance(places: Places, pid: int, owner: str = "") -> None:
    """Removes the note of a host that has left all its runs."""
    _remove(_path(places, pid, owner))


def forget_process(places: Places, pid: int) -> None:
    """Removes the notes of every host of a dead process."""
    for path in _paths(places, pid):
        _remove(path)


def attending(places: Places) -> list[int]:
    """Returns the pid of every process that has a note."""
    try:
        names = os.listdir(_directory(places))
    except OSError:
        return []
    return sorted({int(pid) for name in names if (pid := name.partition("-")[0]).isdecimal()})


def dead_in(places: Places, run_id: str) -> list[int]:
    """Returns the pid of every process that noted a run and is gone. Reads only their notes."""
    return [
        pid
        for pid in attending(places)
        if start_time(pid) is None
        and any(each.run_id == run_id for each in attendances(places, pid))
    ]


def is_present(places: Places, shim_id: str) -> bool:
    """Returns True if the process of a shim lives. Reads the notes of all living processes."""
    return any(
        each.source.shim_id == shim_id
        for pid in attending(places)
        if start_time(pid) is not None
        for each in attendances(places, pid)
    )


def noted_at(places: Places, pid: int) -> float:
    """Returns when a process last noted a run, in seconds since 1970; 0 if it never did."""
    times = [0.0]
    for path in _paths(places, pid):
        try:
            times.append(os.stat(path).st_mtime)
        except OSError:
            continue  # removed meanwhile
    return max(times)


def attendances(places: Places, pid: int) -> list[Attendance]:
    """Returns the runs that a process noted. Skips a torn line: its run was never entered."""
    lines: list[bytes] = []
    for path in _paths(places, pid):
        try:
            with open(path, "rb", opener=plain_file) as file:
                lines += file.read(_MAX_NOTE_BYTES).splitlines()
        except OSError:
            continue  # removed meanwhile, or not a file
    found: list[Attendance] = []
    for line in lines:
        try:
            found.append(_decode(line))
        except msgspec.MsgspecError:
            continue
    return found


def _directory(places: Places) -> str:
    return os.path.join(places.state, "processes")


def _path(places: Places, pid: int, owner: str) -> str:
    return os.path.join(_directory(places), f"{pid}-{owner}" if owner else str(pid))


def _paths(places: Places, pid: int) -> list[str]:
    """Returns the files of all hosts of one process."""
    try:
        names = os.listdir(_directory(places))
    except OSError:
        return []
    own = [name for name in names if name.partition("-")[0] == str(pid)]
    return [os.path.join(_directory(places), name) for name in sorted(own)]


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return  # it was never written, or the disk became read-only
