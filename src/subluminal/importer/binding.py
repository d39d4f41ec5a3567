"""Moves secrets out of a configuration into a secret store, and binds them in `config.toml`.

A value is stored before it leaves the configuration. Backups of the file get a note in its place
too, so that the value is in the store and nowhere else.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from subluminal.clock import now, rfc3339
from subluminal.config.loading import load_settings, parse_settings
from subluminal.config.places import Places
from subluminal.contracts.bindings import SecretBinding
from subluminal.contracts.vocabulary import SecretSource
from subluminal.errors import InvalidInput, SecretUnavailable, SubluminalError
from subluminal.importer.backups import list_backups
from subluminal.importer.env_secrets import EnvSecret, SecretNote
from subluminal.importer.files import read_config, replace
from subluminal.importer.importing import Bound
from subluminal.importer.proposal import Proposal
from subluminal.importer.text.notation import TOML
from subluminal.secrets import keychain
from subluminal.secrets.file_store import FileStore
from subluminal.secrets.private_files import write_private
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
        self._places = places
        self._settings = load_settings(places.settings)
        self._sources = Sources(environ, places, self._settings.secrets)
        self._source = source or self._fitting_source()
        self.outcomes: dict[tuple[str, tuple[str, ...]], Moved] = {}
        """by file and path inside it, so that a second attempt at a file replaces the first"""

    def __call__(self, proposal: Proposal) -> Bound:
        """Stores the secrets of one file and writes their bindings."""
        notes: dict[tuple[str, ...], str] = {}
        literals: dict[str, str] = {}
        added: list[tuple[str, SecretBinding]] = []
        for row in proposal.rows:
            for secret in row.secrets:
                moved = self._bind(row.server, secret, added)
                self.outcomes[proposal.path, secret.path] = moved
                if moved.note:
                    notes[secret.path] = str(moved.note)
                    literals[secret.node.raw] = proposal.client.notation.quote(str(moved.note))
        if added:
            _add_bindings(self._places, added)
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


def _add_bindings(places: Places, added: Iterable[tuple[str, SecretBinding]]) -> None:
    """Appends bindings to `config.toml`, durably. Everything the user wrote there is kept."""
    exists = os.path.exists(places.settings)
    found = read_config(places.settings) if exists else None
    text = found.data.decode("utf-8") if found else ""
    newline = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += newline
    for server, binding in added:
        lines = [
            "" if text else None,
            f"[[servers.{TOML.quote(server)}.secret_bindings]]",
            f"inject_as = {TOML.quote(binding.inject_as)}",
            f"secret_ref = {TOML.quote(binding.secret_ref)}",
            f"source = {TOML.quote(binding.source.value)}",
        ]
        text += "".join(line + newline for line in lines if line is not None)
    try:
        parse_settings(text.encode("utf-8"), places.settings)
    except InvalidInput:
        raise SubluminalError(
            f"cannot add bindings to `{places.settings}`: it already has `secret_bindings` of the "
            "same server in another notation",
            hint="rewrite them as `[[servers.NAME.secret_bindings]]` tables, then import again",
        ) from None
    if found:
        replace(found, text.encode("utf-8"))
    else:
        write_private(places.settings, text.encode("utf-8"))
