"""One file that is restored: what in it is ours, and the file without that."""

import json

from subluminal.errors import SubluminalError
from subluminal.importer.backups import Backup
from subluminal.importer.checking import check_unhooked
from subluminal.importer.clients.description import Client, HookForm
from subluminal.importer.document import Document, Entry, EntryKind, is_blank, locating, parse
from subluminal.importer.hooks.entries import remove_hooks
from subluminal.importer.hooks.finding import find_hooks
from subluminal.importer.hooks.plugin import recognise_plugin
from subluminal.importer.hooks.trusting import without_trust
from subluminal.importer.importing import Target
from subluminal.importer.proposal import reader_of
from subluminal.importer.text.tree import Kind, Node
from subluminal.importer.wrapper import recognise


class RestoredFile:
    """A file that is restored, with the backups of it."""

    def __init__(self, target: Target, backups: list[Backup], data: bytes | None) -> None:
        self.target = target
        self.backups = [each for each in backups if each.manifest.kind == "import"]
        self.data = data
        restored = [at for at, each in enumerate(backups) if each.manifest.kind == "restore"]
        since = backups[restored[-1] + 1 :] if restored else backups
        self._is_new = any(each.manifest.is_new for each in since)

    @property
    def is_plugin(self) -> bool:
        """Whether the whole file is ours."""
        shape = self.target.client.hooks
        return bool(self.target.hooks and shape and shape.form is HookForm.PLUGIN)

    def parse(self, data: bytes) -> Document:
        """Parses what was in the file at some time."""
        return parse(reader_of(self.target.client, self.target.hooks), self.target.path, data)

    def servers(self) -> list[str]:
        """Returns the names of the servers that are wrapped."""
        document = self._document()
        return [e.server for e in document.entries if is_ours(e)] if document else []

    def hooks(self) -> list[str]:
        """Returns the events that run our hook."""
        client = self.target.client
        if self.is_plugin and client.hooks:
            text = (self.data or b"").decode("utf-8", "replace")
            return list(client.hooks.events) if recognise_plugin(text, client.name) else []
        document = self._document() if self.target.hooks else None
        if document is None:
            return []
        with locating(self.target.path):
            return [e.event for e in find_hooks(client, document.root)]

    def _document(self) -> Document | None:
        if not self.data or is_blank(self.data) or self.is_plugin:
            return None
        return self.parse(self.data)

    def history(self) -> list[Document]:
        """Returns the file as it was before each import, newest first."""
        found: list[Document] = []
        for backup in reversed(self.backups):
            try:
                found.append(self.parse(backup.before()))
            except SubluminalError:
                continue  # a damaged backup must not prevent unwrapping
        return found

    def without_hooks(self, data: bytes) -> bytes | None:
        """Returns the file without our hooks; None if it was created for them and is empty now."""
        if self.target.hooks is None:
            return data
        document = self.parse(data)
        client = self.target.client
        plain = [d.root for d in self.history() if _is_plain(client, d.root)]

        def was_there(*path: str) -> bool:
            return any(_has(root, path) for root in plain)

        with locating(self.target.path):
            edits = remove_hooks(client, document.root, was_there)
        after = self.parse(document.edited(edits))
        if edits:
            check_unhooked(document, after)
        header = json.dumps(dict(client.hooks.header if client.hooks else ()))
        rest = "".join(after.text.split())
        if edits and self._is_new and rest in ("{}", "".join(header.split())):
            return None
        return document.edited(edits)

    def without_trust(self, data: bytes | None) -> bytes | None:
        """Returns the file without the trust in our hooks; None if nothing else is in it."""
        trusted = {key: h for b in self.backups for key, h in b.manifest.trusted.items()}
        if data is None or not trusted:
            return data
        after = without_trust(self.parse(data), trusted)
        return None if self._is_new and is_blank(after) else after


def _is_plain(client: Client, root: Node) -> bool:
    """Returns True if a file has none of our hooks, understood or not."""
    try:
        return not find_hooks(client, root)
    except SubluminalError:
        return True


def _has(root: Node, path: tuple[str, ...]) -> bool:
    node: Node | None = root
    for name in path:
        node = node.get(name) if node is not None and node.kind is Kind.TABLE else None
    return node is not None


def is_ours(entry: Entry) -> bool:
    """Returns True if the entry's server is wrapped."""
    return entry.kind is EntryKind.STDIO and recognise(entry.argv) is not None
