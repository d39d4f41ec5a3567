"""Finds our hooks in a client's file.

A hook of ours is a command that `command` recognises, in the list of any event.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from subluminal.errors import SubluminalError
from subluminal.importer.clients.description import Client, HookForm, HookShape
from subluminal.importer.document import unique_members
from subluminal.importer.hooks.command import HookCommand, recognise_line
from subluminal.importer.text.tree import Kind, Node

_HINT = "fix the file by hand; `sub import --no-hooks` leaves it alone"


class FoundHook(NamedTuple):
    """A hook of ours, and where it is."""

    event: str
    at: int
    """its position, or its group's, in the list of the event"""
    within: int | None
    """its position in the group"""
    entry: Node
    command: HookCommand


def find_hooks(client: Client, root: Node) -> list[FoundHook]:
    """Returns our hooks, in the order of the file. Raises if the file is ambiguous."""
    table = hooks_table(client, root)
    if table is None:
        return []
    return [
        found
        for member in unique_members(table)
        for at, item in enumerate(member.node.items)
        for found in _ours(client, member.name, at, item)
    ]


def hooks_table(client: Client, root: Node) -> Node | None:
    """Returns the table of hooks; None if there is none. Raises if it is not understood."""
    if root.kind is not Kind.TABLE:
        raise SubluminalError("the file does not hold an object")
    members = unique_members(root, "hooks")
    table = members[0].node if members else None
    if table is None:
        return None
    if table.kind is not Kind.TABLE:
        raise SubluminalError("its `hooks` is not an object", hint=_HINT)
    for event in shape_of(client).events:
        node = table.get(event)
        if node is not None and node.kind is not Kind.LIST:
            raise SubluminalError(f"its `hooks.{event}` is not a list", hint=_HINT)
    return table


def _ours(client: Client, event: str, at: int, item: Node) -> Iterator[FoundHook]:
    if shape_of(client).form is HookForm.FLAT:
        entries: list[tuple[int | None, Node]] = [(None, item)]
    else:
        inside = item.get("hooks") if item.kind is Kind.TABLE else None
        entries = list(enumerate(inside.items)) if inside is not None else []
    for within, entry in entries:
        node = entry.get(shape_of(client).command_key) if entry.kind is Kind.TABLE else None
        command = recognise_line(node.string, client.name) if node and node.string else None
        if command is not None:
            yield FoundHook(event, at, within, entry, command)


def shape_of(client: Client) -> HookShape:
    """Returns where a client that has hooks keeps them."""
    assert client.hooks is not None, "the caller has checked"
    return client.hooks


def without_ours(client: Client, root: Node) -> Any:
    """Returns the whole file as plain data, without our hooks and what they leave empty."""
    value = root.value()
    events = value.get("hooks")
    ours = {(each.event, each.at, each.within) for each in find_hooks(client, root)}
    if not isinstance(events, dict):
        return value
    for event, items in list(events.items()):
        if isinstance(items, list):
            kept = [_pruned(item, event, at, ours) for at, item in enumerate(items)]
            events[event] = [item for item in kept if item is not None]
    value["hooks"] = {event: items for event, items in events.items() if items != []}
    return {name: each for name, each in value.items() if name != "hooks" or each}


def _pruned(item: Any, event: str, at: int, ours: set[tuple[str, int, int | None]]) -> Any:
    if (event, at, None) in ours:
        return None
    inside = item.get("hooks") if isinstance(item, dict) else None
    if not isinstance(inside, list) or not any((event, at, n) in ours for n in range(len(inside))):
        return item
    kept = [hook for n, hook in enumerate(inside) if (event, at, n) not in ours]
    return {**item, "hooks": kept} if kept else None
