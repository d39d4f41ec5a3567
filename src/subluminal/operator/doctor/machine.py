"""Checks of this machine: versions, the home, ledgerd, processes and the imported clients."""

import os
import stat
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from subluminal import __version__
from subluminal.config.loading import load_settings
from subluminal.config.places import Places, exposed_file
from subluminal.counts import counted
from subluminal.errors import SubluminalError
from subluminal.importer.clients.description import Scene
from subluminal.importer.drift import DriftKind, findings
from subluminal.importer.wrapper import our_installation
from subluminal.journal.reading import journal_files
from subluminal.ledger.client.http import Client, DaemonUnavailable
from subluminal.ledger.client.roll_call import close_what_died
from subluminal.ledger.daemon.instance import is_running
from subluminal.operator.amounts import size
from subluminal.operator.doctor.checks import Check
from subluminal.supervise.orphans import find_orphans

_NEEDED = ("msgspec", "PyYAML", "google-re2")
_SQLITE = (3, 51, 3)
"""Before this version, a crash during a WAL reset could lose committed rows."""
_OTHERS = 0o077
_MIN_FREE_BYTES = 256 << 20
_MAX_BACKLOG_BYTES = 64 << 20


def check_versions(_places: Places) -> Iterator[Check]:
    """Checks Python, the libraries and SQLite."""
    python = ".".join(map(str, sys.version_info[:3]))
    supported = sys.version_info >= (3, 11)
    detail = f"sub {__version__} on Python {python}"
    hint = None if supported else "use Python 3.11 or newer"
    yield Check("versions", supported, detail, hint)
    missing = [name for name in _NEEDED if not _installed(name)]
    found = ", ".join(f"{name} {_installed(name)}" for name in _NEEDED if _installed(name))
    yield Check(
        "libraries",
        not missing,
        f"missing: {', '.join(missing)}" if missing else found,
        "install subluminal again" if missing else None,
    )
    yield _sqlite()


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _sqlite() -> Check:
    if find_spec("apsw") is None:
        return Check(
            "sqlite", False, "the ledger's libraries are missing", "install `subluminal[daemon]`"
        )
    import apsw

    text = apsw.sqlite_lib_version()
    ok = tuple(int(part) for part in text.split(".")[:3]) >= _SQLITE
    wanted = ".".join(map(str, _SQLITE))
    hint = None if ok else f"upgrade `apsw` to get SQLite {wanted} or newer"
    return Check("sqlite", ok, f"SQLite {text}", hint)


def check_home(places: Places) -> Iterator[Check]:
    """Checks that the home can be written, and that nobody else can read it."""
    yield _home(places)
    yield _permissions(places)
    yield _settings(places)
    yield _disk(places)
    yield _reports(places)


def _home(places: Places) -> Check:
    path = places.home
    if not os.path.isdir(path):
        parent = _existing(path)
        ok = os.access(parent, os.W_OK)
        hint = None if ok else f"make `{parent}` writable, or set SUB_HOME"
        return Check("home", ok, f"`{path}` will be created at first use", hint)
    ok = os.access(path, os.W_OK)
    detail = f"`{path}`" + ("" if ok else " is not writable")
    hint = None if ok else "nothing can be recorded; check who owns it"
    return Check("home", ok, detail, hint)


def _existing(path: str) -> str:
    """Returns the nearest directory above a path that exists."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _permissions(places: Places) -> Check:
    """Checks that only the owner can read records and state (local-is-not-trusted)."""
    own = os.geteuid()
    bad = []
    for path in (
        places.home,
        places.state,
        places.journal,
        places.secrets,
        places.runtime_dir,
        places.ledger,
        f"{places.ledger}-wal",
        places.executions,
    ):
        try:
            status = os.stat(path)
        except OSError:
            continue
        if status.st_mode & _OTHERS or status.st_uid not in (own, 0):
            bad.append(f"`{path}` is {stat.filemode(status.st_mode)}")
    exposed = exposed_file(places)
    if exposed is not None:
        return Check("permissions", False, *exposed)
    if not bad:
        return Check("permissions", True, "only you can read what is recorded")
    return Check(
        "permissions", False, "; ".join(bad), "remove other users' access with `chmod go= FILE`"
    )


def _settings(places: Places) -> Check:
    if not os.path.exists(places.settings):
        return Check("settings", True, "there is no config.toml: all settings have their defaults")
    try:
        load_settings(places.settings)
    except SubluminalError as problem:
        return Check("settings", False, str(problem), problem.hint)
    return Check("settings", True, f"`{places.settings}`")


def _disk(places: Places) -> Check:
    disk = os.statvfs(_existing(places.home))
    free = disk.f_bavail * disk.f_frsize
    ok = free >= _MIN_FREE_BYTES
    hint = None if ok else "free some space: on a full disk `decision_on_error` decides every call"
    return Check("disk", ok, f"{free >> 20} MiB free", hint)


def _reports(places: Places) -> Check:
    try:
        names = sorted(name for name in os.listdir(places.reports) if name.startswith("bug-"))
    except OSError:
        names = []
    if not names:
        return Check("reports", True, "no bug reports")
    newest = os.path.join(places.reports, names[-1])
    count = counted(len(names), "bug report")
    return Check(
        "reports", False, f"{count}, newest: `{newest}`", "please send them to us, then delete them"
    )


def check_ledgerd(places: Places) -> Iterator[Check]:
    """Checks that ledgerd, if it runs, answers and keeps up."""
    try:
        status = Client(places).get("/v1/status")
    except DaemonUnavailable:
        yield from _without_ledgerd(places)
        return
    problem = status["problem"]
    detail = f"ledgerd {status['version']} is running, pid {status['pid']}"
    yield Check("ledgerd", not problem, problem or detail, "see its log" if problem else None)
    yield _sockets(places)
    backlog = status["backlog_bytes"]
    ok = backlog < _MAX_BACKLOG_BYTES
    hint = None if ok else "ledgerd is falling behind: see `sub ledgerd status`"
    yield Check("backlog", ok, f"{size(backlog)} of journals to read", hint)
    yield _events(status)


def _events(status: dict[str, Any]) -> Check:
    detail = f"{status['events_total']} events of {status['calls_total']} calls"
    bad_lines = status["quarantined"]
    if bad_lines:
        found = f"{bad_lines} lines ({size(status['quarantined_bytes'])}) were not events"
        hint = "`sub ledgerd status` says where they are"
        return Check("events", False, f"{detail}; {found}", hint)
    if status["newer_events"]:
        found = f"{status['newer_events']} events are of a newer version, and stored unread"
        return Check("events", False, f"{detail}; {found}", "upgrade subluminal to read them")
    return Check("events", True, detail)


def _without_ledgerd(places: Places) -> Iterator[Check]:
    if is_running(places):
        yield Check(
            "ledgerd",
            False,
            "ledgerd is running but does not answer",
            "run `sub ledgerd stop`, then `sub ledgerd start`",
        )
    else:
        # Nothing is lost without ledgerd: journals wait for it.
        yield Check("ledgerd", True, "ledgerd is not running; commands start it when needed")
    yield _sockets(places)
    unread = sum(os.stat(file.path).st_size for file in journal_files(places.journal))
    ok = unread < 16 * _MAX_BACKLOG_BYTES
    hint = None if ok else "run `sub ledgerd start`: it reads journals and removes old ones"
    yield Check("backlog", ok, f"{size(unread)} of journals", hint)


def _sockets(places: Places) -> Check:
    """Checks that no other user can replace our sockets."""
    path = places.runtime_dir
    if not os.path.isdir(path):
        return Check("sockets", True, f"`{path}` will be created at first use")
    owner = os.stat(path).st_uid
    ok = owner == os.geteuid() and os.access(path, os.W_OK)
    hint = None if ok else "set SUB_RUNTIME_DIR to a directory of your own"
    return Check("sockets", ok, f"`{path}`" + ("" if ok else " belongs to another user"), hint)


def check_processes(places: Places) -> Iterator[Check]:
    """Checks for processes and runs that earlier runs left behind."""
    orphans = find_orphans()
    if orphans:
        told = "; ".join(f"{each.pid} ({each.reason})" for each in orphans[:5])
        count = f"{len(orphans)} process{'es' if len(orphans) > 1 else ''}"
        yield Check("orphans", False, f"{count} left over: {told}", "end one with `kill PID`")
    else:
        yield Check("orphans", True, "no processes left over")
    closed = close_what_died(places)
    runs = counted(closed, "run")
    detail = f"closed {runs} whose processes had died" if closed else "no run was left open"
    yield Check("runs", True, detail)


def check_clients(places: Places) -> Iterator[Check]:
    """Checks that every server of every client goes through a shim."""
    scene = Scene(os.environ, os.getcwd())
    ours = our_installation(places, scene.user_home)
    # Hooks have checks of their own, which also run them.
    found = [f for f in findings(scene, places, ours) if f.kind is not DriftKind.HOOKS]
    for finding in found:
        name, ok = f"client ({finding.client})", not finding.is_mendable
        yield Check(name, ok, finding.message, finding.hint)
    if not found:
        yield Check("clients", True, "every server of every client found goes through a shim")
