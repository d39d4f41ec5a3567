"""Which runs a process is in, on disk: what it leaves behind for whoever closes them if it dies.

One small file per process under `$SUB_HOME/state/processes`, gone after an orderly end.
"""

import os

import msgspec
from msgspec import Struct

from subluminal.config.places import Places, make_private_dir
from subluminal.contracts.identity import Identity, Source


class Attendance(Struct, frozen=True):
    """One process in one run."""

    run_id: str
    identity: Identity
    source: Source


_decode = msgspec.json.Decoder(Attendance).decode


def note_attendance(places: Places, pid: int, attendance: Attendance) -> None:
    """Notes that a process is in a run, if the disk has room: else nobody can close it for us."""
    try:
        make_private_dir(os.path.dirname(_path(places, pid)))
        fd = os.open(_path(places, pid), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError:
        return
    try:
        os.write(fd, msgspec.json.encode(attendance) + b"\n")
    except OSError:
        return
    finally:
        os.close(fd)


def forget_attendance(places: Places, pid: int) -> None:
    """Forgets a process that has left all its runs."""
    try:
        os.unlink(_path(places, pid))
    except OSError:
        return  # never noted, or a disk that became read-only


def attending(places: Places) -> list[int]:
    """Returns every process that noted a run and did not take it back, by pid."""
    try:
        names = os.listdir(os.path.dirname(_path(places, 0)))
    except OSError:
        return []
    return sorted(int(name) for name in names if name.isdecimal())


def noted_at(places: Places, pid: int) -> float:
    """When a process last noted a run, in seconds since 1970; 0 if it did not."""
    try:
        return os.stat(_path(places, pid)).st_mtime
    except OSError:
        return 0.0


def attendances(places: Places, pid: int) -> list[Attendance]:
    """Returns the runs that a process was in; a line that is torn was never entered."""
    try:
        with open(_path(places, pid), "rb") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    found: list[Attendance] = []
    for line in lines:
        try:
            found.append(_decode(line))
        except msgspec.MsgspecError:
            continue
    return found


def _path(places: Places, pid: int) -> str:
    return os.path.join(places.state, "processes", str(pid))
