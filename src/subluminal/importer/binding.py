"""Moves secrets out of a configuration into a secret store, and binds them in `config.toml`.

A value is stored before it leaves the configuration. Backups of the file get a note in its place
too, so that the value is in the store and nowhere else. The entry's command is approved with the
binding, because a stored secret serves no other command (`secrets.approval`). A project's file can
bind secrets of its own; it cannot get a command approved for a server that has bindings already.
"""

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from subluminal.clock import now, rfc3339
from subluminal.config.loading import load_settings
from subluminal.config.places import Places
from subluminal.contracts.bindings import SecretBinding
from subluminal.contracts.vocabulary import SecretSource
from subluminal.errors import SecretUnavailable, SubluminalError
from subluminal.importer.approving import entry_approval
from subluminal.importer.backups import list_backups
from subluminal.importer.clients.description import Scope
from subluminal.importer.env_secrets import EnvSecret, SecretNote
from subluminal.importer.importing import Bound
from subluminal.importer.proposal import Proposal, Row
from subluminal.importer.settings_file import Approval, change_settings
from subluminal.secrets import keychain
from subluminal.secrets.file_store import FileStore
from subluminal.secrets.resolving import Sources, read_secret, refuse_value
from subluminal.secrets.usage import record_change


class Moved(NamedTuple):
    """What happened to one secret. Never holds the value."""

    server: str
    variable: str
    note: SecretNote | None
    """its new place; None if it was not moved"""
    reason: str = ""
    """why it was not moved"""


class Binder:
    """Binds the secrets of proposals. `outcomes` says what happened to each secret."""

    def __init__(
        self, environ: Mapping[str, str], places: Places, source: SecretSource | None = None
    ) -> None:
        self._environ = environ
        self._places = places
        self._settings = load_settings(places.settings)
        self._sources = Sources(environ, places, self._settings.secrets)
        self._source = source or self._fitting_source()
        self.outcomes: dict[tuple[str, tuple[str, ...]], Moved] = {}
        """by file and path inside it, so that a second attempt at a file replaces the first"""
        self.approvals: dict[str, Approval] = {}
        """approvals that were written, by server"""

    def __call__(self, proposal: Proposal) -> Bound:
        """Stores the secrets of one file and writes their bindings."""
        notes: dict[tuple[str, ...], str] = {}
        literals: dict[str, str] = {}
        added: list[tuple[str, SecretBinding]] = []
        approvals: dict[str, Approval] = {}
        for row in proposal.rows:
            problem = self._approve(proposal, row, approvals) if row.secrets else ""
            for secret in row.secrets:
                moved = (
                    Moved(row.server, secret.variable, None, problem)
                    if problem
                    else self._bind(row.server, secret, added)
                )
                self.outcomes[proposal.path, secret.path] = moved
                if moved.note:
                    notes[secret.path] = str(moved.note)
                    literals[secret.node.raw] = proposal.client.notation.quote(str(moved.note))
        bound = {row.server for row in proposal.rows for s in row.secrets if s.path in notes}
        approvals = {server: each for server, each in approvals.items() if server in bound}
        if added or approvals:
            change_settings(self._places, added, approvals)
            self.approvals |= approvals
            self._settings = load_settings(self._places.settings)

        def scrub(data: bytes) -> bytes:
            return _scrubbed(data, literals)

        for backup in list_backups(self._places, os.path.realpath(proposal.path)):
            backup.overwrite(scrub(backup.before()))
        return Bound(notes, scrub)

    def _fitting_source(self) -> SecretSource:
        try:
            keychain.backend(self._settings.secrets.keychain_wait_ms)
        except SecretUnavailable:
            return SecretSource.FILE
        return SecretSource.KEYCHAIN

    def _approve(self, proposal: Proposal, row: Row, approvals: dict[str, Approval]) -> str:
        """Adds the approval of an entry's command; returns why its secrets must stay, if so."""
        known = self._settings.servers.get(row.server)
        try:
            wanted = entry_approval(proposal.client, row.entry, self._environ, os.getcwd())
        except SubluminalError as problem:
            return f"{problem}; {problem.hint}" if problem.hint else str(problem)
        earlier = approvals.get(row.server)
        approved = earlier.command if earlier else known.command if known else None
        if approved == wanted.command:
            return ""
        if approved:
            return "another command is approved for this server's stored secrets"
        if proposal.scope is Scope.PROJECT and known and known.secret_bindings:
            return "the server already has bindings, which a project's file cannot join"
        approvals[row.server] = wanted
        return ""

    def _bind(
        self, server: str, secret: EnvSecret, added: list[tuple[str, SecretBinding]]
    ) -> Moved:
        def stays(reason: str) -> Moved:
            return Moved(server, secret.variable, None, reason)

        bound = self._binding_of(server, secret.variable, added)
        if bound is not None:
            # Bindings go by server name, so the entries of all clients share them.
            if bound.source is SecretSource.ENV:
                return stays("the server already has a binding for it, to an environment variable")
            if read_secret(bound.source, bound.secret_ref, self._sources) != secret.value:
                return stays("the server already has a binding for it, with another value")
            return Moved(server, secret.variable, SecretNote(bound.source, bound.secret_ref))
        try:
            refuse_value(secret.value)
        except SecretUnavailable as problem:
            return stays(str(problem))
        name = self._store(f"{server}.{secret.variable}", secret.value)
        binding = SecretBinding(inject_as=secret.variable, secret_ref=name, source=self._source)
        added.append((server, binding))
        return Moved(server, secret.variable, SecretNote(self._source, name))

    def _binding_of(
        self, server: str, variable: str, added: list[tuple[str, SecretBinding]]
    ) -> SecretBinding | None:
        known = self._settings.servers.get(server)
        there = [*(known.secret_bindings if known else ()), *(b for s, b in added if s == server)]
        return next((binding for binding in there if binding.inject_as == variable), None)

    def _store(self, wanted: str, value: str) -> str:
        """Stores a value under a name that is free, or has this value already; returns the name."""
        base = re.sub(r"[^!-~]|[:`\"\\]", "_", wanted)[:120]
        name, number = base, 1
        while (there := read_secret(self._source, name, self._sources)) not in (None, value):
            number += 1
            name = f"{base}-{number}"
        if there is None:
            at = rfc3339(now().wall_ms)
            if self._source is SecretSource.FILE:
                FileStore(self._places, self._settings.secrets).write(name, value, at)
            else:
                keychain.write(name, value, self._settings.secrets.keychain_wait_ms)
            record_change(self._places, self._source, name, at)
        return name


def _scrubbed(data: bytes, literals: Mapping[str, str]) -> bytes:
    for raw, note in literals.items():
        data = data.replace(raw.encode("utf-8"), note.encode("utf-8"))
    return data
