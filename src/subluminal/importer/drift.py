"""What has changed since an import so that calls would pass unseen (`--check`, `sub doctor`)."""

import os
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.importer.backups import Manifest, list_backups
from subluminal.importer.clients.description import Client, Scene, Scope
from subluminal.importer.clients.table import CLIENTS
from subluminal.importer.files import read_config
from subluminal.importer.importing import Target, find_targets
from subluminal.importer.planning import Action, Plan, Row, make_plan
from subluminal.importer.wrapping import Installation
from subluminal.supervise.processes import pids, read


class DriftKind(Enum):
    """What is wrong."""

    UNWRAPPED = "unwrapped"
    STALE = "stale"
    MISSING_PROGRAM = "missing_program"
    REFUSED = "refused"
    WIPED = "wiped"
    UNREADABLE = "unreadable"
    DAEMON = "daemon"


class Finding(NamedTuple):
    """One thing that is not as an import left it, and what to do about it."""

    client: str
    kind: DriftKind
    message: str
    hint: str
    path: str = ""
    server: str = ""


def findings(
    scene: Scene,
    places: Places,
    ours: Installation,
    clients: Iterable[Client] = tuple(CLIENTS.values()),
    *,
    path: str | None = None,
    scope: Scope | None = None,
    imported_only: bool = False,
) -> list[Finding]:
    """Looks at the clients' files. `imported_only` leaves out clients nobody has imported."""
    imported = _imported(places)
    found: list[Finding] = []
    for client in clients:
        known = [m for m in imported if m.client == client.name]
        if imported_only and not known:
            continue
        for target in find_targets(client, scene, path=path, scope=scope):
            found += _of_file(target, ours, known)
        if path is None and scope is None:
            found += _gone(client, known)
        if client.name == "codex":
            found += codex_daemons()
    return found


def codex_daemons() -> Iterator[Finding]:
    """Background daemons of Codex: they keep the environment of the terminal that began them."""
    for pid in pids():
        words = read(pid, "cmdline").split(b"\0")
        if b"app-server" in words and b"--managed-daemon" in words and _is_own(pid):
            yield Finding(
                "codex",
                DriftKind.DAEMON,
                f"a background daemon of Codex (process {pid}) keeps servers under an old run",
                f"close Codex and `kill {pid}`; `codex --no-daemon` starts none",
            )


def _is_own(pid: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}").st_uid == os.geteuid()
    except OSError:
        return False


def _imported(places: Places) -> list[Manifest]:
    """The newest import of every file that was not restored since."""
    newest = {b.manifest.real_path: b.manifest for b in list_backups(places)}
    return [manifest for manifest in newest.values() if manifest.kind == "import"]


def _of_file(target: Target, ours: Installation, known: list[Manifest]) -> Iterator[Finding]:
    name = target.client.name
    try:
        data = read_config(target.path)
        plan = make_plan(target.client, target.path, data.data, ours)
    except SubluminalError as error:
        hint = error.hint or f"mend it, then `sub import {name}`"
        yield Finding(name, DriftKind.UNREADABLE, str(error), hint, target.path)
        return
    real = data.path
    if not plan.rows and any(m.real_path == real and m.servers for m in known):
        yield Finding(
            name,
            DriftKind.WIPED,
            f"`{target.path}` has lost all its servers since it was imported",
            f"`sub restore --list` shows what was there; then `sub import {name}`",
            target.path,
        )
    for row in plan.rows:
        finding = _of_row(plan, row)
        if finding:
            yield finding


def _of_row(plan: Plan, row: Row) -> Finding | None:
    again = f"`sub import {plan.client.name}`"
    where = f"`{row.server}` in `{plan.path}`"
    match row.action:
        case Action.KEEP | Action.REMOTE:
            return None
        case Action.WRAP:
            kind, message, hint = (
                DriftKind.UNWRAPPED,
                f"{where} is not wrapped",
                f"{again} wraps it",
            )
        case Action.REFUSE:
            kind, message = DriftKind.REFUSED, f"{where} cannot be wrapped: {row.detail}"
            hint = "mend the entry"
        case Action.REFRESH:
            kind, message = _stale(where, row)
            hint = f"{again} renews it"
    return Finding(plan.client.name, kind, message, hint, plan.path, row.server)


def _stale(where: str, row: Row) -> tuple[DriftKind, str]:
    program = row.program or ""
    if program and not os.access(program, os.X_OK):
        return (
            DriftKind.MISSING_PROGRAM,
            f"{where} cannot start: there is no `{program}`",
        )
    return DriftKind.STALE, f"{where} is wrapped by another installation or under another name"


def _gone(client: Client, known: list[Manifest]) -> Iterator[Finding]:
    for manifest in known:
        if manifest.servers and not os.path.exists(manifest.real_path):
            yield Finding(
                client.name,
                DriftKind.WIPED,
                f"`{manifest.path}` was imported and is gone",
                "`sub restore --list` shows what was there",
                manifest.path,
            )
