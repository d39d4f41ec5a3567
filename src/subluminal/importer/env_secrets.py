"""Values in an entry's `env` that look like secrets, and the notes that replace them.

A reference such as `${TOKEN}` is not a secret, whatever the variable is called. A note names the
secret and its source. The server never sees the note, because its binding sets the variable when
the server is started.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from subluminal.contracts.vocabulary import SecretSource
from subluminal.core.records.redaction.redactor import Redactor
from subluminal.importer.clients.description import Client
from subluminal.importer.document import Entry, env_of
from subluminal.importer.text.tree import Node
from subluminal.secrets.approval import NOTE_PREFIX

_SECRET_NAME = re.compile(
    r"(?i)(?:^|_)(?:token|secret|passw(?:or)?d|passphrase|pwd|pat|credentials?|(?:api_?|access_?|"
    r"private_?|secret_?|auth_?|encryption_?|signing_?)key|key)(?:_?\d+)?$|(?:^|_)(?:secret|token)_"
)
_REFERENCE = re.compile(r"\$\{|\$[A-Za-z_]|\{env:|\{file:|^op://")
_WHOLE_REFERENCE = re.compile(r"\$\{[^}]*\}?|\$[A-Za-z_]\w*|\{(?:env|file):[^}]*\}?|^op://.*")
_NOTE = re.compile(rf"{NOTE_PREFIX}(file|keychain):([!-~]+)")
_MIN_CHARS = 6
"""Shortest value that counts as a secret. Shorter ones could not be redacted in records either."""


class EnvSecret(NamedTuple):
    """A variable of an entry whose value looks like a secret."""

    variable: str
    path: tuple[str, ...]
    node: Node

    @property
    def value(self) -> str:
        return self.node.string or ""


class SecretNote(NamedTuple):
    """The place that a secret was moved to; written into the configuration instead of it."""

    source: SecretSource
    name: str

    def __str__(self) -> str:
        return f"{NOTE_PREFIX}{self.source.value}:{self.name}"


def read_note(value: str | None) -> SecretNote | None:
    """Reads a note; None if the value is not a note."""
    found = _NOTE.fullmatch(value or "")
    return SecretNote(SecretSource(found[1]), found[2]) if found else None


def is_reference(value: str) -> bool:
    """Returns True if the client or a vault fills in the value, or a part of it."""
    return _REFERENCE.search(value) is not None


def references_in(value: str) -> list[str]:
    """Returns the parts of a value that the client or a vault fills in."""
    return _WHOLE_REFERENCE.findall(value)


def without_references(value: str) -> str:
    """Returns the parts of a value that are written as they are, a space for each reference."""
    return _WHOLE_REFERENCE.sub(" ", value)


def find_secrets(client: Client, entry: Entry) -> Iterator[EnvSecret]:
    """Yields the variables of an entry whose values look like secrets."""
    table = env_of(entry, client)
    for member in table.members if table else ():
        value = member.node.string
        if value and looks_secret(member.name, value):
            path = (*entry.path, client.shape.env_key, member.name)
            yield EnvSecret(member.name, path, member.node)


def find_notes(client: Client, entry: Entry) -> Iterator[tuple[Node, SecretNote]]:
    """Yields the values of an entry that are notes."""
    table = env_of(entry, client)
    for member in table.members if table else ():
        note = read_note(member.node.string)
        if note:
            yield member.node, note


def looks_secret(name: str, value: str) -> bool:
    """Returns True if a value is a secret, by the name of its variable or by its own shape."""
    if len(value) < _MIN_CHARS or is_reference(value) or read_note(value):
        return False
    return has_secret_name(name) or has_secret_shape(value)


def has_secret_name(name: str) -> bool:
    """Returns True if a variable of this name usually holds a secret."""
    return _SECRET_NAME.search(name) is not None


def has_secret_shape(text: str) -> bool:
    """Returns True if a token of a known shape is in the text."""
    return bool(_shapes().find(text.encode("utf-8", "surrogatepass")))


_made: list[Redactor] = []


def _shapes() -> Redactor:
    """Returns a redactor with the built-in token patterns, compiled on first use."""
    if not _made:
        _made.append(Redactor())
    return _made[0]
