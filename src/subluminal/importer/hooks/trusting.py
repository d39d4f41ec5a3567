"""What Codex trusts: `[hooks.state."KEY"] trusted_hash` in its `config.toml`. Pure.

Codex skips a hook in silence unless the hash that stands there is that of the hook.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from subluminal.importer.document import Document
from subluminal.importer.text.notation import Edit
from subluminal.importer.text.toml_edits import assigned, removed
from subluminal.importer.text.tree import Kind, Node

_TABLE = ("hooks", "state")
_HASH = "trusted_hash"


def with_trust(document: Document, trusted: Mapping[str, str]) -> bytes:
    """Returns the file with these hooks trusted."""
    text = document.text
    for key, wanted in trusted.items():
        if _trusted(document.root, key) != wanted:
            text = assigned(text, (*_TABLE, key, _HASH), wanted, document.path)
    return document.edited([Edit(0, len(document.text), text)])


def without_trust(document: Document, trusted: Mapping[str, str]) -> bytes:
    """Returns the file without the trust that an import wrote there."""
    text = document.text
    for key in _still_ours(document.root, trusted):
        text = removed(text, (*_TABLE, key, _HASH))
    return document.edited([Edit(0, len(document.text), text)])


def _still_ours(root: Node, trusted: Mapping[str, str]) -> Iterator[str]:
    for key, given in trusted.items():
        if _trusted(root, key) == given:
            yield key


def _trusted(root: Node, key: str) -> Any:
    node: Node | None = root
    for name in (*_TABLE, key, _HASH):
        node = node.get(name) if node is not None and node.kind is Kind.TABLE else None
    return node.string if node is not None else None
