"""What an import would do to one configuration: one row for each server, and the new bytes.

Pure. The new bytes are checked before anyone can write them: they must parse, start every server
through the shim, and be otherwise equal to the old ones.
"""

from enum import Enum
from typing import NamedTuple

from subluminal.importer.checking import check_wrapped
from subluminal.importer.clients.description import Client, Scope
from subluminal.importer.document import Entry, EntryKind, parse
from subluminal.importer.env_secrets import EnvSecret, find_secrets
from subluminal.importer.overrides import overrides_of
from subluminal.importer.text.notation import Edit
from subluminal.importer.wrapper import Installation, recognise
from subluminal.importer.wrapping import wrap


class Action(Enum):
    """What an import does with an entry."""

    WRAP = "wrap"
    REFRESH = "refresh"
    """its wrapper names another `sub`, home or server than it should"""
    KEEP = "keep"
    """it is wrapped as it should be"""
    REMOTE = "remote"
    """http and sse servers are not wrapped yet"""
    REFUSE = "refuse"
    """its command could not be recognised"""


class Row(NamedTuple):
    """One server of a configuration."""

    server: str
    action: Action
    detail: str
    entry: Entry
    secrets: tuple[EnvSecret, ...] = ()
    """values in the entry's `env` that look like secrets"""
    program: str | None = None
    """the `sub` that a wrapped entry names"""
    dropped: tuple[str, ...] = ()
    """variables and options that a project's file may not set, and that the import removes"""

    @property
    def path(self) -> tuple[str, ...]:
        """names from the root of the file to the entry"""
        return self.entry.path


class Proposal(NamedTuple):
    """What an import would change in one file."""

    client: Client
    path: str
    scope: Scope | None
    before: bytes
    after: bytes
    rows: list[Row]

    @property
    def changes(self) -> bool:
        return self.before != self.after


def make_proposal(
    client: Client,
    path: str,
    data: bytes,
    ours: Installation,
    *,
    scope: Scope | None = None,
    replacements: dict[tuple[str, ...], str] | None = None,
) -> Proposal:
    """Works out the import of one file. `replacements` are new values of variables, by path."""
    document = parse(client, path, data)
    rows: list[Row] = []
    edits: list[Edit] = []
    for entry in document.entries:
        is_stdio = entry.kind is EntryKind.STDIO
        made = wrap(client, entry, ours, scope) if is_stdio else []
        dropped = overrides_of(client, entry, scope, ours) if is_stdio else ()
        rows.append(_row(client, entry, made, dropped))
        edits += made
        edits += _replaced(client, rows[-1], replacements or {})
    after = document.edited(edits)
    if edits:
        check_wrapped(document, parse(client, path, after), ours, scope)
    return Proposal(client, path, scope, data, after, rows)


def _row(client: Client, entry: Entry, edits: list[Edit], dropped: tuple[str, ...]) -> Row:
    if entry.kind is EntryKind.REMOTE:
        return Row(entry.server, Action.REMOTE, f"{entry.detail}: not wrapped yet", entry)
    if entry.kind is EntryKind.BROKEN:
        return Row(entry.server, Action.REFUSE, entry.detail, entry)
    found = recognise(entry.argv)
    secrets = tuple(s for s in find_secrets(client, entry) if s.variable not in dropped)
    inner = " ".join(entry.argv[found.length if found else 0 :])
    action = Action.KEEP if not edits else Action.REFRESH if found else Action.WRAP
    program = found.wrapper.program if found else None
    return Row(entry.server, action, inner, entry, secrets, program, dropped)


def _replaced(client: Client, row: Row, values: dict[tuple[str, ...], str]) -> list[Edit]:
    return [
        Edit(secret.node.start, secret.node.end, client.notation.quote(values[secret.path]))
        for secret in row.secrets
        if secret.path in values
    ]
