"""The home and the place for sockets: there, writable, and nobody else's business (local-is-not-trusted)."""

import os
import stat
from collections.abc import Iterator

from subluminal.config.loading import load_settings
from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.operator.doctor.checks import Check

_OTHERS = 0o077
_MIN_FREE_BYTES = 256 << 20


def check(places: Places) -> Iterator[Check]:
    yield _home(places)
    yield _permissions(places)
    yield _settings(places)
    yield _disk(places)
    yield _reports(places)


def _home(places: Places) -> Check:
    path = places.home
    if not os.path.isdir(path):
        parent = path
        while not os.path.isdir(parent):
            parent = os.path.dirname(parent)
        ok = os.access(parent, os.W_OK)
        hint = None if ok else f"make `{parent}` writable, or set SUB_HOME"
        return Check("home", ok, f"`{path}` is made at first use", hint)
    ok = os.access(path, os.W_OK)
    detail = f"`{path}`" + ("" if ok else " is not writable")
    return Check("home", ok, detail, None if ok else "nothing can be recorded; check its owner")


def _permissions(places: Places) -> Check:
    """Everything that can hold what agents did is for its owner only."""
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
    ):
        try:
            status = os.stat(path)
        except OSError:
            continue
        if status.st_mode & _OTHERS or status.st_uid not in (own, 0):
            bad.append(f"`{path}` is {stat.filemode(status.st_mode)}")
    if not bad:
        return Check("permissions", True, "nobody else can read what is recorded")
    return Check("permissions", False, "; ".join(bad), "`chmod go= FILE` keeps others out")


def _settings(places: Places) -> Check:
    if not os.path.exists(places.settings):
        return Check("settings", True, "no config.toml: every setting has its default")
    try:
        load_settings(places.settings)
    except SubluminalError as problem:
        return Check("settings", False, str(problem), problem.hint)
    return Check("settings", True, f"`{places.settings}`")


def _disk(places: Places) -> Check:
    path = places.home
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    disk = os.statvfs(path)
    free = disk.f_bavail * disk.f_frsize
    ok = free >= _MIN_FREE_BYTES
    hint = None if ok else "when it is full, `decision_on_error` decides every call"
    return Check("disk", ok, f"{free >> 20} MiB free", hint)


def _reports(places: Places) -> Check:
    try:
        names = sorted(name for name in os.listdir(places.reports) if name.startswith("bug-"))
    except OSError:
        names = []
    if not names:
        return Check("reports", True, "no reports of bugs")
    newest = os.path.join(places.reports, names[-1])
    return Check(
        "reports",
        False,
        f"{len(names)} reports of bugs, the newest is `{newest}`",
        "please pass them on, then remove them",
    )
