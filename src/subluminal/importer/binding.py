"""Moves secret values out of a configuration: into a source, with a binding in `config.toml`.

Values go to their new place before they leave the old one. Backups of the file keep a note instead
of the value, so that it is in one place only.
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
from subluminal.errors import SecretUnavailable
from subluminal.importer.backups import list_backups
from subluminal.importer.env_secrets import EnvSecret, SecretNote
from subluminal.importer.importing import Bound
from subluminal.importer.planning import Plan
from subluminal.importer.settings_file import add_bindings
from subluminal.secrets import keychain
from subluminal.secrets.file_store import FileStore
from subluminal.secrets.resolving import Sources, read_secret, refuse_value
from subluminal.secrets.usage import record_change


class Moved(NamedTuple):
    """What became of one value. Never holds the value."""

    server: str
    variable: str
    note: SecretNote | None
    """where it is now"""
    reason: str = ""
    """why it stayed where it was"""


class Binder:
    """Binds the secrets of plans. `outcomes` tell what became of each."""

    def __init__(
        self, environ: Mapping[str, str], places: Places, source: SecretSource | None = None
    ) -> None:
        self._places = places
        self._settings = load_settings(places.settings)
        self._sources = Sources(environ, places, self._settings.secrets)
        self._source = source or self._fitting_source()
        self.outcomes: dict[tuple[str, tuple[str, ...]], Moved] = {}
        """by file and place; a file that is planned again is told once"""

    def __call__(self, plan: Plan) -> Bound:
        """Stores the values of a plan and writes their bindings."""
        notes: dict[tuple[str, ...], str] = {}
        literals: dict[str, str] = {}
        added: list[tuple[str, SecretBinding]] = []
        for row in plan.rows:
            for secret in row.secrets:
                moved = self._bind(row.server, secret, added)
                self.outcomes[plan.path, secret.path] = moved
                if moved.note:
                    notes[secret.path] = str(moved.note)
                    literals[secret.node.raw] = plan.client.notation.quote(str(moved.note))
        if added:
            add_bindings(self._places, added)
            self._settings = load_settings(self._places.settings)

        def scrub(data: bytes) -> bytes:
            return _scrubbed(data, literals)

        for backup in list_backups(self._places, os.path.realpath(plan.path)):
            backup.overwrite(scrub(backup.before()))
        return Bound(notes, scrub)

    def _fitting_source(self) -> SecretSource:
        try:
            keychain.backend(self._settings.secrets.keychain_wait_ms)
        except SecretUnavailable:
            return SecretSource.FILE
        return SecretSource.KEYCHAIN

    def _bind(
        self, server: str, secret: EnvSecret, added: list[tuple[str, SecretBinding]]
    ) -> Moved:
        def stays(reason: str) -> Moved:
            return Moved(server, secret.variable, None, reason)

        bound = self._binding_of(server, secret.variable, added)
        if bound is not None:
            # One server name has one set of bindings, whichever client's entry it is.
            if bound.source is SecretSource.ENV:
                return stays("it is bound to a variable already")
            if read_secret(bound.source, bound.secret_ref, self._sources) != secret.value:
                return stays("it is bound to another value already")
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

    def _store(self, wish: str, value: str) -> str:
        """Puts a value into the source, under a name that means nothing else there."""
        base = re.sub(r"[^!-~]|[:`\"\\]", "_", wish)[:120]
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
