"""What a person or a client may do to a configuration: the same edit, made to two texts.

Every edit takes a parsed configuration and returns new bytes. It looks at names only, never at how
an entry is started, so that it means the same before and after an import.
"""

from collections.abc import Callable

from subluminal.importer.document import Document, Entry, EntryKind
from subluminal.importer.text.notation import Edit, append
from subluminal.importer.text.tree import Kind

UserEdit = Callable[[Document, int], bytes | None]
"""The number chooses a server. None: this edit cannot be made here."""


def add_at_the_start(document: Document, _: int) -> bytes | None:
    """A new key, or a comment, before everything else."""
    if "added" in document.text:
        return None
    if document.client.notation.is_json:
        at = document.root.start + 1
        comma = "," if document.root.members else ""
        return document.edited([Edit(at, at, f' "added by": ["me", 1]{comma}')])
    return document.edited([Edit(0, 0, "# added by me\nadded_key = [1,\n 2]\n")])


def add_a_server(document: Document, _: int) -> bytes | None:
    """A server that is not wrapped."""
    if any(entry.server == "late one" for entry in document.entries):
        return None
    if not document.client.notation.is_json:
        servers = document.root.get("mcp_servers")
        if servers is not None and servers.start >= 0:
            return None  # an inline table is closed
        end = len(document.text)
        return document.edited([Edit(end, end, '\n[mcp_servers."late one"]\nurl = "http://y"\n')])
    table = document.root.get("mcpServers")
    assert table is not None
    comma = "," if table.members else ""
    at = table.start + 1
    return document.edited([Edit(at, at, f' "late one": {{"url": "http://y"}}{comma}')])


def remove_a_server(document: Document, number: int) -> bytes | None:
    """One entry goes, wrapped or not."""
    if not document.entries:
        return None
    entry = document.entries[number % len(document.entries)]
    table = document.root
    for name in entry.path[:-1]:
        table = table.get(name) or table
    member = table.member(entry.server)
    assert member is not None
    if not member.inline:
        return None
    return document.edited(document.client.notation.remove_members(table, [member]))


def add_an_argument(document: Document, number: int) -> bytes | None:
    """One more argument for a server."""
    entry = _stdio(document, number)
    args = entry.node.get("args") if entry else None
    if args is None or args.kind is not Kind.LIST or not entry:
        return None
    return document.edited([append(args, ['"--added"'], ", ")])


def change_a_variable(document: Document, number: int) -> bytes | None:
    """Another value in `env`."""
    entry = _stdio(document, number)
    variables = entry.node.get("env") if entry else None
    if variables is None or not variables.members:
        return None
    node = variables.members[0].node
    return document.edited([Edit(node.start, node.end, '"changed"')])


def add_at_the_end(document: Document, _: int) -> bytes | None:
    """Blank lines below everything."""
    end = len(document.text)
    return document.edited([Edit(end, end, "\n  \n")])


def _stdio(document: Document, number: int) -> Entry | None:
    entries = [e for e in document.entries if e.kind is EntryKind.STDIO]
    return entries[number % len(entries)] if entries else None


USER_EDITS: tuple[UserEdit, ...] = (
    add_at_the_start,
    add_a_server,
    remove_a_server,
    add_an_argument,
    change_a_variable,
    add_at_the_end,
)
