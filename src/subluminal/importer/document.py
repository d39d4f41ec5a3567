"""A configuration's bytes as text with a tree, and back to bytes: a byte order mark stays."""

from typing import NamedTuple

from subluminal.errors import InvalidInput, Problem, SubluminalError
from subluminal.importer.clients.description import Client
from subluminal.importer.entries import Entry, find_entries
from subluminal.importer.text.edits import Edit, apply_edits
from subluminal.importer.text.tree import Node, place_of

_MARK = b"\xef\xbb\xbf"


class Document(NamedTuple):
    """One parsed configuration."""

    client: Client
    path: str
    text: str
    has_mark: bool
    root: Node
    entries: list[Entry]

    def edited(self, edits: list[Edit]) -> bytes:
        """The bytes after some edits."""
        data = apply_edits(self.text, edits).encode("utf-8")
        return _MARK + data if self.has_mark else data


def parse(client: Client, path: str, data: bytes) -> Document:
    """Reads a configuration. Raises with file, line and column if it cannot be read surely."""
    has_mark = data.startswith(_MARK)
    body = data[len(_MARK) :] if has_mark else data
    text = _decode(body, path)
    try:
        root = client.notation.parse(text)
        return Document(client, path, text, has_mark, root, find_entries(client, root))
    except InvalidInput as error:
        raise InvalidInput([_located(problem, path) for problem in error.problems]) from None
    except SubluminalError as error:
        raise SubluminalError(f"`{path}`: {error}", hint=error.hint) from None


def _decode(body: bytes, path: str) -> str:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = place_of(body[: error.start].decode("utf-8", "replace"), error.start)
        raise InvalidInput([Problem("not UTF-8 text", path, line, max(column, 1))]) from None
    if "\0" in text:
        line, column = place_of(text, text.index("\0"))
        raise InvalidInput([Problem("not a text file", path, line, column)])
    return text


def _located(problem: Problem, path: str) -> Problem:
    hint = problem.hint or "nothing was changed; mend the file, or its client may reset it"
    return problem._replace(file=path, hint=hint)
