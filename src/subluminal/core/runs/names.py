"""Makes and finds ids: of runs, shims and this machine (shared-runs, Pack 0.3).

Several processes must agree on the id of a run and of the machine.

If nothing names the run, all shims of one client process are one run. The first of these shims
writes the run's id, a UUIDv7, to a small file under `$SUB_HOME/state/clients`; the others read it.
"""

import os
import time
from collections.abc import Mapping

from subluminal.config import env
from subluminal.config.places import Places, encode_name, make_private_dir, recordable
from subluminal.config.plain_files import plain_file
from subluminal.state.processes import start_time
from subluminal.system.processes import boot_id

_ASIDE = ".aside"
_MAX_ID_CHARS = 200


def uuid7() -> str:
    """Returns a new UUIDv7: milliseconds first, then randomness, so that ids sort by time."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
    value = value & ~(0xF000 << 64) | 0x7000 << 64  # version 7
    value = value & ~(0xC000 << 48) | 0x8000 << 48  # the variant of RFC 9562
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def run_id_of(environ: Mapping[str, str], places: Places, client_pid: int | None = None) -> str:
    """Returns the run of calls that do not name their own.

    It is SUB_RUN_ID, else the client's session, else the run of the client's process. That is the
    parent of this process unless `client_pid` names another.
    """
    given = environ.get(env.SUB_RUN_ID.name) or session_of(environ)
    return recordable(given) if given else _run_of_process(places, client_pid or os.getppid())


def session_of(environ: Mapping[str, str]) -> str | None:
    """Returns the client's session, which names the run if SUB_RUN_ID does not."""
    return environ.get(env.CLAUDE_SESSION) or environ.get(env.COPILOT_SESSION)


def host_id(places: Places) -> str:
    """Returns this machine's id, made once per home; a temporary id if the home is not writable."""
    return _agreed(os.path.join(places.state, "host_id")) or uuid7()


def journal_dir(places: Places, run_id: str) -> str:
    """Returns the directory of a run's journals."""
    return os.path.join(places.journal, encode_name(run_id))


def run_of_client(places: Places, pid: int, start: int) -> str | None:
    """Returns the run of a process as a client; None if it never was one."""
    path = os.path.join(places.state, "clients", f"{pid}-{start}-{boot_id()}")
    return _agreed(path) if os.path.exists(path) else None


def _run_of_process(places: Places, pid: int) -> str:
    # Pids are reused, and start times repeat after a boot.
    name = f"{pid}-{_started(pid)}-{boot_id()}"
    directory = os.path.join(places.state, "clients")
    path = os.path.join(directory, name)
    if not os.path.exists(path):
        _forget_dead_clients(directory)
    return _agreed(path) or f"client-{name}"


def _started(pid: int) -> int:
    """Returns the start time of a process; 0 if it is dead, or hidden from us."""
    return start_time(pid) or 0


def _agreed(path: str) -> str | None:
    """Returns the id in a file, which the first process makes; None if the disk is not usable."""
    try:
        if not os.path.exists(path):
            _offer(path)
        with open(path, encoding="ascii", opener=plain_file) as file:
            return file.read(_MAX_ID_CHARS).strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _offer(path: str) -> None:
    """Links a complete file with a new id into place, so that nobody reads half an id."""
    make_private_dir(os.path.dirname(path))
    aside = f"{path}.{os.getpid()}-{os.urandom(4).hex()}{_ASIDE}"
    with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(uuid7())
    try:
        os.link(aside, path)
    except FileExistsError:
        return  # another process was first
    finally:
        os.unlink(aside)


def _forget_dead_clients(directory: str) -> None:
    """Removes the files of clients that are dead: none of their shims will ask again."""
    boot = boot_id()
    try:
        names = os.listdir(directory)
    except OSError:
        return
    for name in names:
        # A file that is being made is named after the process that makes it.
        made_by = name.split(".")[-2].partition("-")[0] if name.endswith(_ASIDE) else ""
        if made_by.isdecimal() and _started(int(made_by)):
            continue
        pid, _, rest = name.partition("-")
        if pid.isdecimal() and rest != f"{_started(int(pid))}-{boot}":
            try:
                os.unlink(os.path.join(directory, name))
            except OSError:
                continue
