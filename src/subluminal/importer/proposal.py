"""What an import would do to one file: a row for each server, one for the hooks, the new bytes.

Pure. The new bytes are checked before anyone can write them: they must parse, start every server
through the shim, and be otherwise equal to the old ones.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from subluminal.errors import SubluminalError
from subluminal.importer.checking import check_hooked, check_wrapped
from subluminal.importer.clients.description import Client, HookForm, Scope
from subluminal.importer.document import Entry, EntryKind, is_blank, locating, parse
from subluminal.importer.env_secrets import EnvSecret, find_secrets
from subluminal.importer.hooks.entries import HookWish, add_hooks, new_text
from subluminal.importer.hooks.finding import find_hooks
from subluminal.importer.hooks.plugin import plugin_text, recognise_plugin
from subluminal.importer.hooks.trusting import with_trust
from subluminal.importer.overrides import overrides_of
from subluminal.importer.text.notation import JSON, Edit
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

    @property
    def changes(self) -> bool:
        """Whether the import changes the entry."""
        return self.action in (Action.WRAP, Action.REFRESH)


class HookRow(NamedTuple):
    """The hooks of one file."""

    action: Action
    events: tuple[str, ...]
    """events that run our hook after the import"""
    program: str | None = None
    """the `sub` that hooks in the file name, if it is not ours"""


class Proposal(NamedTuple):
    """What an import would change in one file."""

    client: Client
    path: str
    scope: Scope | None
    before: bytes
    after: bytes
    rows: list[Row]
    hooks: HookRow | None = None
    """None if the import leaves hooks alone"""
    trusted: Mapping[str, str] = {}
    """hashes by which Codex is told to trust hooks, by the hook's key"""

    @property
    def changes(self) -> bool:
        return self.before != self.after

    @property
    def adds_hooks(self) -> bool:
        """Whether hooks are added or refreshed."""
        return self.hooks is not None and self.hooks.action is not Action.KEEP

    @property
    def changes_servers(self) -> bool:
        """Whether something besides hooks changes."""
        return self.changes and (self.hooks is None or any(row.changes for row in self.rows))


def make_proposal(
    client: Client,
    path: str,
    data: bytes,
    ours: Installation,
    *,
    scope: Scope | None = None,
    replacements: dict[tuple[str, ...], str] | None = None,
    hooks: HookWish | None = None,
    trusted: Mapping[str, str] | None = None,
) -> Proposal:
    """Works out the import of one file.

    `replacements` are new values of variables, by path. With `hooks`, our hooks are added. A file
    that does not exist has no bytes.
    """
    if hooks and client.hooks and client.hooks.form is HookForm.PLUGIN:
        return _with_plugin(client, path, scope, data, ours)
    if hooks and is_blank(data):
        return _with_new_hooks(client, path, scope, data, ours, hooks)
    proposal = _with_servers(reader_of(client, hooks), path, data, ours, scope, replacements or {})
    if hooks:
        proposal = _with_hooks(proposal, ours, hooks)
    if trusted:
        after = with_trust(parse(client, path, proposal.after), trusted)
        proposal = proposal._replace(after=after, trusted=trusted)
    return proposal._replace(client=client)


def reader_of(client: Client, hooks: HookWish | None) -> Client:
    """Returns the client as the reader of a file: one that has only hooks has no servers."""
    if hooks is None or client.hooks is None or client.hooks.beside_servers:
        return client
    return client._replace(tables=(), notation=JSON)


def _with_plugin(
    client: Client, path: str, scope: Scope | None, data: bytes, ours: Installation
) -> Proposal:
    text = data.decode("utf-8", "replace")
    found = recognise_plugin(text, client.name)
    if found is None and not is_blank(data):
        raise SubluminalError(
            f"`{path}` was not written by `sub import`", hint="nothing was changed; move it away"
        )
    after = plugin_text(client.name, ours, found).encode("utf-8")
    action = Action.WRAP if found is None else Action.REFRESH if after != data else Action.KEEP
    other = found.program if found and found.program != ours.program else None
    row = HookRow(action, client.hooks.events if client.hooks else (), other)
    return Proposal(client, path, scope, data, after, [], row)


def _with_new_hooks(
    client: Client, path: str, scope: Scope | None, data: bytes, ours: Installation, wish: HookWish
) -> Proposal:
    after = new_text(client, ours, wish).encode("utf-8")
    row = HookRow(Action.WRAP, client.hooks.events if client.hooks else ())
    return Proposal(client, path, scope, data, after, [], row)


def _with_hooks(proposal: Proposal, ours: Installation, wish: HookWish) -> Proposal:
    client, path = proposal.client, proposal.path
    document = parse(client, path, proposal.after)
    with locating(path):
        change = add_hooks(client, document.root, ours, wish)
    after = document.edited(change.edits)
    if change.edits:
        check_hooked(document, parse(client, path, after))
    action = Action.REFRESH if change.stale else Action.WRAP if change.missing else Action.KEEP
    other = [each.command.program for each in change.stale if each.command.program != ours.program]
    events = dict.fromkeys(
        each.event for each in find_hooks(client, parse(client, path, after).root)
    )
    row = HookRow(action, tuple(events), other[0] if other else None)
    return proposal._replace(after=after, hooks=row)


def _with_servers(
    client: Client,
    path: str,
    data: bytes,
    ours: Installation,
    scope: Scope | None,
    replacements: dict[tuple[str, ...], str],
) -> Proposal:
    document = parse(client, path, data)
    rows: list[Row] = []
    edits: list[Edit] = []
    for entry in document.entries:
        is_stdio = entry.kind is EntryKind.STDIO
        made = wrap(client, entry, ours, scope) if is_stdio else []
        dropped = overrides_of(client, entry, scope, ours) if is_stdio else ()
        rows.append(_row(client, entry, made, dropped))
        edits += made
        edits += _replaced(client, rows[-1], replacements)
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
