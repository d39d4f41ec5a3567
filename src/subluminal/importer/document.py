"""One client configuration: its text, its tree of spans, and the MCP servers in it.

Bytes become text with a tree, and edits make bytes again; a byte order mark is kept.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import NamedTuple

from subluminal.errors import InvalidInput, Problem, SubluminalError
from subluminal.importer.clients.description import Client, Shape
from subluminal.importer.text.notation import Edit, apply_edits
from subluminal.importer.text.tree import Kind, Member, Node, place_of

_MARK = b"\xef\xbb\xbf"
URL_KEYS = ("url", "httpUrl", "serverUrl")
"""Keys of the address of a server that is reached by URL."""
_STDIO_TYPES = ("stdio", "local")


class EntryKind(Enum):
    """How an entry reaches its server."""

    STDIO = "stdio"
    """the client starts a command"""
    REMOTE = "remote"
    """the client connects to a URL"""
    BROKEN = "broken"
    """the entry could not be recognised"""


class Entry(NamedTuple):
    """The entry of one server."""

    server: str
    path: tuple[str, ...]
    """names from the root of the file to the entry"""
    raw_server: str
    """the server's name as a string in the file's notation"""
    node: Node
    kind: EntryKind
    detail: str = ""
    """transport of a remote entry; problem of a broken one"""
    words: tuple[Node, ...] = ()
    """command and arguments of a stdio entry"""
    start: int = 0
    """offset of the server's name in the text"""

    @property
    def argv(self) -> list[str]:
        """The command line, before the client expands variables in it."""
        return [word.string or "" for word in self.words]


class Document(NamedTuple):
    """One parsed configuration."""

    client: Client
    path: str
    text: str
    has_mark: bool
    root: Node
    entries: list[Entry]

    def edited(self, edits: list[Edit]) -> bytes:
        """Returns the file's bytes with edits applied."""
        data = apply_edits(self.text, edits).encode("utf-8")
        return _MARK + data if self.has_mark else data


def parse(client: Client, path: str, data: bytes) -> Document:
    """Parses a configuration. Raises with file, line and column if it is not unambiguous."""
    has_mark = data.startswith(_MARK)
    body = data[len(_MARK) :] if has_mark else data
    text = _decode(body, path)
    with locating(path):
        root = client.notation.parse(text)
        return Document(client, path, text, has_mark, root, find_entries(client, root))


@contextmanager
def locating(path: str) -> Iterator[None]:
    """Adds the name of the file to errors about its contents."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput([_located(problem, path) for problem in error.problems]) from None
    except SubluminalError as error:
        raise SubluminalError(f"`{path}`: {error}", hint=error.hint) from None


def is_blank(data: bytes) -> bool:
    """Returns True if a file has no text at all."""
    return not data.removeprefix(_MARK).strip()


def _decode(body: bytes, path: str) -> str:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = place_of(body[: error.start].decode("utf-8", "replace"), error.start)
        raise InvalidInput(
            [Problem("the file is not UTF-8 text", path, line, max(column, 1))]
        ) from None
    if "\0" in text:
        line, column = place_of(text, text.index("\0"))
        raise InvalidInput(
            [Problem("the file holds a NUL character, so it is not text", path, line, column)]
        )
    return text


def _located(problem: Problem, path: str) -> Problem:
    hint = problem.hint or "nothing was changed; fix the file first, or its client may reset it"
    return problem._replace(file=path, hint=hint)


def find_entries(client: Client, root: Node) -> list[Entry]:
    """Returns the entry of every server, in file order."""
    if root.kind is not Kind.TABLE:
        raise SubluminalError("the file does not hold an object")
    return [
        _entry(client, table_path, member)
        for pattern in client.tables
        for table_path, table in _tables(root, pattern, ())
        for member in unique_members(table)
        if member.name not in client.not_servers
    ]


def _tables(
    node: Node, pattern: tuple[str, ...], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Node]]:
    if not pattern:
        if node.kind is Kind.TABLE:
            yield path, node
        return
    for member in unique_members(node, None if pattern[0] == "*" else pattern[0]):
        yield from _tables(member.node, pattern[1:], (*path, member.name))


def unique_members(table: Node, only: str | None = None) -> list[Member]:
    """Returns a table's members, or only those of one name.

    Raises if a name occurs twice, because parsers differ in which of the two counts.
    """
    seen: set[str] = set()
    members = [member for member in table.members if only in (None, member.name)]
    for member in members:
        if member.name in seen:
            raise SubluminalError(
                f"`{member.name}` occurs twice in the same object", hint="remove one of the two"
            )
        seen.add(member.name)
    return members


def _entry(client: Client, table_path: tuple[str, ...], member: Member) -> Entry:
    raw = client.notation.name_as_value(member)
    path = (*table_path, member.name)

    def made(kind: EntryKind, detail: str = "", words: tuple[Node, ...] = ()) -> Entry:
        return Entry(member.name, path, raw, member.node, kind, detail, words, member.start)

    problem = _name_problem(member.name)
    if problem or member.node.kind is not Kind.TABLE:
        return made(EntryKind.BROKEN, problem or "the entry is not an object")
    unique_members(member.node)
    is_remote = any(member.node.get(key) for key in URL_KEYS)
    if member.node.get("command") is None:
        if is_remote:
            return made(EntryKind.REMOTE, _transport(member.node))
        return made(EntryKind.BROKEN, "it has neither a `command` nor a `url`")
    if is_remote or _transport(member.node) not in _STDIO_TYPES:
        return made(
            EntryKind.BROKEN, "it has a `command`, but its `type` or `url` says that it is remote"
        )
    words = _words(client.shape, member.node)
    if isinstance(words, str):
        return made(EntryKind.BROKEN, words)
    return made(EntryKind.STDIO, words=words)


def _name_problem(name: str) -> str:
    """Returns why the shim cannot take a name; empty if it can."""
    if not name:
        return "its name is empty"
    if name.startswith("@"):
        return "names that begin with `@` are Subluminal's own; rename the server"
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return "its name is not valid Unicode"
    return "its name contains a NUL character" if "\0" in name else ""


def _transport(node: Node) -> str:
    declared = node.get("type")
    if declared is not None and declared.string:
        return declared.string
    return "stdio" if node.get("command") else "http"


def _words(shape: Shape, node: Node) -> tuple[Node, ...] | str:
    """Returns the nodes of the command line, or the problem with it."""
    command, args = node.get("command"), node.get("args")
    assert command is not None, "the caller has checked"
    if shape.command_is_list:
        parts = tuple(command.items)
        if command.kind is not Kind.LIST or not parts:
            return "its `command` is not a list of strings"
    else:
        if args is not None and args.kind is not Kind.LIST:
            return "its `args` is not a list"
        parts = (command, *(args.items if args else ()))
    if any(word.string is None for word in parts):
        return "its command line contains something that is not a string"
    return parts if parts[0].string else "its `command` is empty"


def env_of(entry: Entry, client: Client) -> Node | None:
    """Returns the table of variables that the entry sets."""
    node = entry.node.get(client.shape.env_key)
    return node if node is not None and node.kind is Kind.TABLE else None
