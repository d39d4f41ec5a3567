"""Names for runs and for this machine (shared-runs, Pack 0.3): what several processes must agree
on.

A run that nobody named is its client's: all shims of one client process are one run. They find
its name, a UUIDv7 of the first of them, in a small file under `$SUB_HOME/state/clients`.
"""

import os
from collections.abc import Mapping

from subluminal.config import env
from subluminal.config.places import Places, encode_name, make_private_dir, recordable
from subluminal.core.runs.ids import uuid7
from subluminal.state.processes import start_time

_SESSION = "CLAUDE_CODE_SESSION_ID"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def run_id_of(environ: Mapping[str, str], places: Places) -> str:
    """Names the run where no call does: SUB_RUN_ID, the client's session, the client's process."""
    given = environ.get(env.SUB_RUN_ID.name) or environ.get(_SESSION)
    return recordable(given) if given else _run_of_process(places, os.getppid())


def host_id(places: Places) -> str:
    """This machine's id, made once per home; a passing one if the home cannot keep it."""
    return _agreed(os.path.join(places.state, "host_id")) or uuid7()


def journal_dir(places: Places, run_id: str) -> str:
    """Where the journals of a run are."""
    return os.path.join(places.journal, encode_name(run_id))


def _run_of_process(places: Places, pid: int) -> str:
    # Pids come again, and so do start times after a boot.
    name = f"{pid}-{start_time(pid) or 0}-{_boot()}"
    directory = os.path.join(places.state, "clients")
    path = os.path.join(directory, name)
    if not os.path.exists(path):
        _forget_dead_clients(directory)
    return _agreed(path) or f"client-{name}"


def _agreed(path: str) -> str | None:
    """The id in a file, made by whoever comes first; None if the disk does not let us."""
    try:
        if not os.path.exists(path):
            _offer(path)
        with open(path, encoding="ascii") as file:
            return file.read().strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _offer(path: str) -> None:
    """Links a new id into place whole, so that nobody reads half of one."""
    make_private_dir(os.path.dirname(path))
    aside = f"{path}.{os.getpid()}.aside"
    with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(uuid7())
    try:
        os.link(aside, path)
    except FileExistsError:
        return  # another process was first
    finally:
        os.unlink(aside)


def _forget_dead_clients(directory: str) -> None:
    """Removes the names of clients that are gone: no shim of theirs will ask again."""
    boot = _boot()
    try:
        names = os.listdir(directory)
    except OSError:
        return
    for name in names:
        pid, _, rest = name.partition("-")
        if pid.isdecimal() and rest != f"{start_time(int(pid)) or 0}-{boot}":
            try:
                os.unlink(os.path.join(directory, name))
            except OSError:
                continue


def _boot() -> str:
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read(8)
    except OSError:
        return "0"
