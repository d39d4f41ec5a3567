"""Undoes imports.

A file that still has the bytes that the import left gets back the exact bytes from before. Clients
rewrite their files and people edit them: from a file that was changed since, only our wrappers are
removed.
"""

import os
import re
from enum import Enum
from typing import NamedTuple

from subluminal.config.agent_environment import refuse_inside_agent
from subluminal.config.places import Places
from subluminal.errors import InvalidInput, SecretUnavailable, SubluminalError
from subluminal.importer.backups import Backup, digest, list_backups, make_backup
from subluminal.importer.checking import check_unwrapped
from subluminal.importer.clients.description import Client
from subluminal.importer.document import Document, Entry, EntryKind, is_blank, parse
from subluminal.importer.env_secrets import SecretNote, find_notes, read_note
from subluminal.importer.files import (
    FileChanged,
    read_config,
    refuse_unwritable,
    remove,
    remove_folders,
    replace,
)
from subluminal.importer.importing import (
    MAX_ATTEMPTS,
    Target,
    keeps_changing,
    one_at_a_time,
)
from subluminal.importer.restored_file import RestoredFile, is_ours
from subluminal.importer.text.notation import JSON, Edit
from subluminal.importer.text.tree import Kind
from subluminal.importer.wrapper import recognise
from subluminal.importer.wrapping import Before, unwrap
from subluminal.secrets.resolving import Sources, read_secret

_QUOTED_NOTE = re.compile(r'"(sub-secret:(?:file|keychain):[!#-\[\]-~]+)"')


class How(Enum):
    """How a file is restored."""

    EXACT = "exact"
    """with the exact bytes from before the import"""
    REMOVED = "removed"
    """the import created the file, so it is removed"""
    UNWRAPPED = "unwrapped"
    """changed since the import: our entries are unwrapped, everything else is kept"""
    UNTOUCHED = "untouched"
    """not at all: it has no entry of ours"""


class Restoration(NamedTuple):
    """What a restore changes in one file."""

    target: Target
    how: How
    servers: list[str]
    before: bytes
    after: bytes | None
    """None if the file is removed"""
    hooks: list[str]
    """events whose hook of ours is taken out"""


class Restorer:
    """Restores the files of one home."""

    def __init__(self, places: Places, sources: Sources) -> None:
        self._places = places
        self._sources = sources

    def propose(self, target: Target) -> Restoration:
        """Works out what a restore would change."""
        found = read_config(target.path)
        backups = list_backups(self._places, found.path)
        data = self._rewound(found.data, backups)
        how = How.UNTOUCHED if data == found.data else How.EXACT
        left = RestoredFile(target, backups, data)
        if data is not None and not is_blank(data):
            data = self._taken_out(left, data)
            if data != left.data:
                how = How.UNWRAPPED
        if data is None:
            how = How.REMOVED
        now = RestoredFile(target, backups, found.data)
        return Restoration(target, how, now.servers(), found.data, data, now.hooks())

    def _taken_out(self, file: RestoredFile, data: bytes) -> bytes | None:
        """Takes out of a file what is still ours, and returns None if nothing else was in it."""
        target = file.target
        if file.is_plugin:
            return None if file.hooks() else data
        document = self._parse(file, data)
        ours = [e for e in document.entries if is_ours(e)]
        if ours:
            history = file.history()
            edits = [edit for e in ours for edit in self._edits(target.client, e, history)]
            data = document.edited(edits)
            check_unwrapped(document, parse(document.client, target.path, data))
        return file.without_trust(file.without_hooks(data))

    def restore(self, target: Target) -> Restoration:
        """Restores a file, after a backup of its current contents."""
        with one_at_a_time(self._places):
            for _ in range(MAX_ATTEMPTS):
                restoration = self.propose(target)
                if restoration.before == restoration.after:
                    return restoration
                try:
                    self._write(restoration)
                except FileChanged:
                    continue
                return restoration
        raise keeps_changing(target.path, "restore")

    def _write(self, restoration: Restoration) -> None:
        found = read_config(restoration.target.path)
        if found.data != restoration.before:
            raise FileChanged(f"another program changed `{restoration.target.path}`")
        refuse_unwritable(restoration.target.path, found)
        backup = make_backup(
            self._places,
            kind="restore",
            client=restoration.target.client.name,
            path=restoration.target.path,
            real_path=found.path,
            before=restoration.before,
            # Not the digest of the real bytes: they may contain secrets again.
            after=b"",
            servers=[],
        )
        try:
            if restoration.after is None:
                remove(found)
                self._remove_folders(found.path)
            else:
                replace(found, restoration.after)
        except SubluminalError:
            backup.discard()
            raise

    def _remove_folders(self, real_path: str) -> None:
        """Removes directories that were made for the file, if they are empty now."""
        for backup in list_backups(self._places, real_path):
            remove_folders(backup.manifest.folders)

    def _rewound(self, data: bytes, backups: list[Backup]) -> bytes | None:
        """Goes back import by import, as long as nobody else changed the file in between.

        Returns None if that ends where the file did not exist.
        """
        left = [each for each in backups if each.manifest.kind == "import"]
        while True:
            known = digest(data)
            match = next((b for b in reversed(left) if b.manifest.after_sha256 == known), None)
            if match is None:
                return data
            if match.manifest.is_new:
                return None
            left.remove(match)
            data = self._filled(match.before())

    def _filled(self, data: bytes) -> bytes:
        """Replaces the notes in a backup by the secrets that they stand for."""
        if b"sub-secret:" not in data:
            return data

        def value(match: re.Match[str]) -> str:
            note = read_note(match[1])
            return match[0] if note is None else JSON.quote(self._value(note))

        return _QUOTED_NOTE.sub(value, data.decode("utf-8")).encode("utf-8")

    def _value(self, note: SecretNote) -> str:
        refuse_inside_agent(self._sources.environ, "sub restore")
        value = read_secret(note.source, note.name, self._sources)
        if value is None:
            raise SecretUnavailable(
                f"the secret `{note.name}` is no longer in the {note.source.value} store, so it "
                "cannot be put back into the configuration",
                hint=f"add it with `sub secrets add {note.name} --source {note.source.value}`",
            )
        return value

    def _edits(self, client: Client, entry: Entry, history: list[Document]) -> list[Edit]:
        edits = unwrap(client, entry, _before(entry, history))
        for node, note in find_notes(client, entry):
            edits.append(Edit(node.start, node.end, JSON.quote(self._value(note))))
        return edits

    def _parse(self, file: RestoredFile, data: bytes) -> Document:
        try:
            return file.parse(data)
        except InvalidInput as error:
            if not file.backups:
                raise
            kept = os.path.join(file.backups[-1].folder, "before")
            problem = error.problems[0]._replace(
                hint=f"fix the file by hand; its backup from before the import is `{kept}`"
            )
            raise InvalidInput([problem]) from None


def _before(entry: Entry, history: list[Document]) -> Before:
    """Looks an entry up in the backups: by its path, or by its command if it was renamed."""
    found = recognise(entry.argv)
    command = entry.argv[found.length :] if found else entry.argv
    plain = [e for d in history for e in d.entries if e.kind is EntryKind.STDIO and not is_ours(e)]
    known = [e for e in plain if e.path == entry.path] or [e for e in plain if e.argv == command]
    if not known:
        return Before()
    passed = known[0].node.get("env_vars")
    has_list = passed is not None and passed.kind is Kind.LIST
    names = [item.string for item in passed.items] if passed and has_list else []
    return Before(
        had_args=known[0].node.get("args") is not None,
        env_vars=[name for name in names if name],
        had_env_vars=passed is not None,
    )
