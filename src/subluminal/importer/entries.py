"""The MCP servers of one configuration: what kind of entry each is, and where its words stand."""

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from subluminal.errors import SubluminalError
from subluminal.importer.clients.description import Client, Shape
from subluminal.importer.text.tree import Kind, Member, Node

_REMOTE_KEYS = ("url", "httpUrl", "serverUrl")
_STDIO_TYPES = ("stdio", "local")


class EntryKind(Enum):
    """What can be done with an entry."""

    STDIO = "stdio"
    REMOTE = "remote"
    BROKEN = "broken"


class Entry(NamedTuple):
    """One server's entry."""

    server: str
    path: tuple[str, ...]
    """names from the file's root to the entry"""
    raw_server: str
    """the server's name as a string in the file's notation"""
    node: Node
    kind: EntryKind
    detail: str = ""
    """a remote entry's transport; what is wrong with a broken one"""
    words: tuple[Node, ...] = ()
    """a stdio entry's command and arguments"""

    @property
    def argv(self) -> list[str]:
        """The command line as the client starts it, before it expands variables."""
        return [word.string or "" for word in self.words]


def find_entries(client: Client, root: Node) -> list[Entry]:
    """Every server of a configuration, in the order of the file."""
    if root.kind is not Kind.TABLE:
        raise SubluminalError("it does not hold an object")
    return [
        _entry(client, table_path, member)
        for pattern in client.tables
        for table_path, table in _tables(root, pattern, ())
        for member in _unique(table)
        if member.name not in client.not_servers
    ]


def _tables(
    node: Node, pattern: tuple[str, ...], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Node]]:
    if not pattern:
        if node.kind is Kind.TABLE:
            yield path, node
        return
    for member in _unique(node, None if pattern[0] == "*" else pattern[0]):
        yield from _tables(member.node, pattern[1:], (*path, member.name))


def _unique(table: Node, only: str | None = None) -> list[Member]:
    """A table's members, or the one of a name. Which of two equal names counts, parsers differ."""
    seen: set[str] = set()
    members = [member for member in table.members if only in (None, member.name)]
    for member in members:
        if member.name in seen:
            raise SubluminalError(
                f"`{member.name}` stands twice in one object", hint="remove one of the two"
            )
        seen.add(member.name)
    return members


def _entry(client: Client, table_path: tuple[str, ...], member: Member) -> Entry:
    raw = client.notation.name_as_value(member)
    path = (*table_path, member.name)

    def made(kind: EntryKind, detail: str = "", words: tuple[Node, ...] = ()) -> Entry:
        return Entry(member.name, path, raw, member.node, kind, detail, words)

    problem = _name_problem(member.name)
    if problem or member.node.kind is not Kind.TABLE:
        return made(EntryKind.BROKEN, problem or "it is not an object")
    _unique(member.node)
    is_remote = any(member.node.get(key) for key in _REMOTE_KEYS)
    if member.node.get("command") is None:
        if is_remote:
            return made(EntryKind.REMOTE, _transport(member.node))
        return made(EntryKind.BROKEN, "it has no `command` and no `url`")
    if is_remote or _transport(member.node) not in _STDIO_TYPES:
        return made(EntryKind.BROKEN, "it has a `command`, and says that it is remote")
    words = _words(client.shape, member.node)
    if isinstance(words, str):
        return made(EntryKind.BROKEN, words)
    return made(EntryKind.STDIO, words=words)


def _name_problem(name: str) -> str:
    """Why a name cannot be an argument of a program; empty if it can."""
    if not name:
        return "its name is empty"
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return "its name is not valid Unicode"
    return "its name holds a NUL character" if "\0" in name else ""


def _transport(node: Node) -> str:
    declared = node.get("type")
    if declared is not None and declared.string:
        return declared.string
    return "stdio" if node.get("command") else "http"


def _words(shape: Shape, node: Node) -> tuple[Node, ...] | str:
    """The nodes of the command line, or what is wrong with it."""
    command, args = node.get("command"), node.get("args")
    assert command is not None, "the caller has looked"
    if shape.command_is_list:
        parts = tuple(command.items)
        if command.kind is not Kind.LIST or not parts:
            return "its `command` is not a list of words"
    else:
        if args is not None and args.kind is not Kind.LIST:
            return "its `args` are not a list"
        parts = (command, *(args.items if args else ()))
    if any(word.string is None for word in parts):
        return "its command line holds something that is not text"
    return parts if parts[0].string else "its `command` is empty"


def env_of(entry: Entry, client: Client) -> Node | None:
    """The table of variables that the entry sets."""
    node = entry.node.get(client.shape.env_key)
    return node if node is not None and node.kind is Kind.TABLE else None
