"""What an import would do to one configuration: a row for every server, and the bytes after it.

Pure. The result is checked before anyone writes it: it must parse, start every server through the
shim, and say otherwise exactly what it said before.
"""

from enum import Enum
from typing import NamedTuple

from subluminal.importer.checking import check_wrapped
from subluminal.importer.clients.description import Client, Scope
from subluminal.importer.document import parse
from subluminal.importer.entries import Entry, EntryKind
from subluminal.importer.env_secrets import EnvSecret, find_secrets
from subluminal.importer.text.edits import Edit
from subluminal.importer.wrapper import recognise
from subluminal.importer.wrapping import Installation, wrap


class Action(Enum):
    """What becomes of an entry."""

    WRAP = "wrap"
    REFRESH = "refresh"
    """it names another `sub`, home or server than it should"""
    KEEP = "keep"
    """it is as it should be"""
    REMOTE = "remote"
    """http and sse servers are not wrapped yet"""
    REFUSE = "refuse"
    """it is not clear what it starts"""


class Row(NamedTuple):
    """One server of a configuration."""

    server: str
    action: Action
    detail: str
    path: tuple[str, ...]
    secrets: tuple[EnvSecret, ...] = ()
    """values in the entry's `env` that look like secrets"""
    program: str | None = None
    """the `sub` that a wrapped entry names"""


class Plan(NamedTuple):
    """What an import does to one file."""

    client: Client
    path: str
    scope: Scope | None
    before: bytes
    after: bytes
    rows: list[Row]

    @property
    def changes(self) -> bool:
        return self.before != self.after


def make_plan(
    client: Client,
    path: str,
    data: bytes,
    ours: Installation,
    *,
    scope: Scope | None = None,
    replacements: dict[tuple[str, ...], str] | None = None,
) -> Plan:
    """Plans the import of one file. `replacements` are new values of variables, by their path."""
    document = parse(client, path, data)
    rows: list[Row] = []
    edits: list[Edit] = []
    for entry in document.entries:
        made = wrap(client, entry, ours) if entry.kind is EntryKind.STDIO else []
        rows.append(_row(client, entry, made))
        edits += made
        edits += _replaced(client, rows[-1], replacements or {})
    after = document.edited(edits)
    if edits:
        check_wrapped(document, parse(client, path, after), ours)
    return Plan(client, path, scope, data, after, rows)


def _row(client: Client, entry: Entry, edits: list[Edit]) -> Row:
    if entry.kind is EntryKind.REMOTE:
        return Row(entry.server, Action.REMOTE, f"{entry.detail}: not wrapped yet", entry.path)
    if entry.kind is EntryKind.BROKEN:
        return Row(entry.server, Action.REFUSE, entry.detail, entry.path)
    found = recognise(entry.argv)
    secrets = tuple(find_secrets(client, entry))
    inner = " ".join(entry.argv[found.length if found else 0 :])
    action = Action.KEEP if not edits else Action.REFRESH if found else Action.WRAP
    program = found.wrapper.program if found else None
    return Row(entry.server, action, inner, entry.path, secrets, program)


def _replaced(client: Client, row: Row, values: dict[tuple[str, ...], str]) -> list[Edit]:
    return [
        Edit(secret.node.start, secret.node.end, client.notation.quote(values[secret.path]))
        for secret in row.secrets
        if secret.path in values
    ]
