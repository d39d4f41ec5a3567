"""Values in an entry's `env` that look like secrets, and the note that is left where one was.

A reference (`${TOKEN}`) is not a secret, whatever its name. The note names the source and the
secret; the server never sees it, because its binding fills the variable at spawn.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from subluminal.contracts.vocabulary import SecretSource
from subluminal.core.records.redaction.redactor import Redactor
from subluminal.importer.clients.description import Client
from subluminal.importer.entries import Entry, env_of
from subluminal.importer.text.tree import Node

_SECRET_NAME = re.compile(
    r"(?i)(?:^|_)(?:token|secret|passw(?:or)?d|passphrase|pwd|pat|credentials?|(?:api_?|access_?|"
    r"private_?|secret_?|auth_?|encryption_?|signing_?)key|key)(?:_?\d+)?$|(?:^|_)(?:secret|token)_"
)
_REFERENCE = re.compile(r"\$\{|\$[A-Za-z_]|\{env:|\{file:|^op://")
_NOTE = re.compile(r"sub-secret:(file|keychain):([!-~]+)")
_MIN_CHARS = 6
"""Shorter values are settings; they could not be masked in records either."""


class EnvSecret(NamedTuple):
    """One variable of an entry whose value looks like a secret."""

    variable: str
    path: tuple[str, ...]
    node: Node

    @property
    def value(self) -> str:
        return self.node.string or ""


class SecretNote(NamedTuple):
    """Where a value went that was in a configuration."""

    source: SecretSource
    name: str

    def __str__(self) -> str:
        return f"sub-secret:{self.source.value}:{self.name}"


def read_note(value: str | None) -> SecretNote | None:
    """Returns what a note says; None for any other value."""
    found = _NOTE.fullmatch(value or "")
    return SecretNote(SecretSource(found[1]), found[2]) if found else None


def find_secrets(client: Client, entry: Entry) -> Iterator[EnvSecret]:
    """The variables of an entry that had better be bindings."""
    table = env_of(entry, client)
    for member in table.members if table else ():
        value = member.node.string
        if value and _looks_secret(member.name, value):
            path = (*entry.path, client.shape.env_key, member.name)
            yield EnvSecret(member.name, path, member.node)


def find_notes(client: Client, entry: Entry) -> Iterator[tuple[Node, SecretNote]]:
    """The variables of an entry whose values we moved elsewhere."""
    table = env_of(entry, client)
    for member in table.members if table else ():
        note = read_note(member.node.string)
        if note:
            yield member.node, note


def _looks_secret(name: str, value: str) -> bool:
    if len(value) < _MIN_CHARS or _REFERENCE.search(value) or read_note(value):
        return False
    if _SECRET_NAME.search(name):
        return True
    return bool(_shapes().find(value.encode("utf-8", "surrogatepass")))


_made: list[Redactor] = []


def _shapes() -> Redactor:
    """The built-in shapes of tokens; compiled once, when the first value is looked at."""
    if not _made:
        _made.append(Redactor())
    return _made[0]
