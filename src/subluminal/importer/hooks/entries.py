"""Edits that add our hooks to a client's JSON, refresh them, or take them out.

Pure: from a tree to a list of edits. Removing is the exact inverse of adding. Hooks of the user
stay as they are, also in the same list or the same group.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from subluminal.importer.clients.description import Client, FailClosed, HookForm
from subluminal.importer.hooks.command import HookCommand
from subluminal.importer.hooks.finding import FoundHook, find_hooks, hooks_table, shape_of
from subluminal.importer.text.notation import JSON, Edit, append, drop, white_before
from subluminal.importer.text.tree import Kind, Node
from subluminal.importer.wrapper import Installation

_ON_FAILURE = ("onFailure", "block")


class HookWish(NamedTuple):
    """What an import wants of a client's hooks."""

    fail_closed: bool = False
    """refuse a call if the hook itself fails; once set, it stays set"""


class Change(NamedTuple):
    """The edits that an import makes, and what they are about."""

    edits: list[Edit]
    missing: list[str]
    """events that get a hook"""
    stale: list[FoundHook]
    """hooks that change"""


def new_text(client: Client, ours: Installation, wish: HookWish) -> str:
    """Returns the text of a new file with our hooks."""
    shape = shape_of(client)
    events = {event: [_item(client, event, ours, wish)] for event in shape.events}
    return json.dumps({**dict(shape.header), "hooks": events}, indent=2, ensure_ascii=False) + "\n"


def add_hooks(client: Client, root: Node, ours: Installation, wish: HookWish) -> Change:
    """Returns edits after which every event runs our hook, once and by this installation."""
    shape = shape_of(client)
    found = find_hooks(client, root)
    first: dict[str, FoundHook] = {}
    for each in found:
        first.setdefault(each.event, each)
    missing = [event for event in shape.events if event not in first]
    edits = _insertions(client, root, {e: _item(client, e, ours, wish) for e in missing})
    stale: list[FoundHook] = []
    for each in first.values():
        made = _refreshed(client, each, ours, wish)
        edits += made
        stale += [each] if made else []
    surplus = [each for each in found if each is not first[each.event]]
    edits += _removals(client, root, surplus, lambda *_path: True)
    return Change(edits, missing, stale + surplus)


def remove_hooks(client: Client, root: Node, was_there: Callable[..., bool]) -> list[Edit]:
    """Returns edits that take our hooks out, with the lists and tables that they leave empty.

    `was_there("hooks", EVENT)` tells whether a table or list existed before the import.
    """
    return _removals(client, root, find_hooks(client, root), was_there)


# The values


def _command(
    client: Client, event: str, ours: Installation, closed: bool, found: HookCommand | None
) -> HookCommand:
    shape = shape_of(client)
    return HookCommand(
        ours.program,
        client.name,
        event if shape.form is HookForm.FLAT else None,
        ours.home,
        found.policy if found else None,
        found.on_error if found else None,
        closed and event == shape.decides and shape.fail_closed is FailClosed.EXIT_CODE,
    )


def _item(client: Client, event: str, ours: Installation, wish: HookWish) -> dict[str, Any]:
    """Returns a new item of an event's list."""
    shape = shape_of(client)
    line = _command(client, event, ours, wish.fail_closed, None).line()
    name, limit = shape.timeout
    hook = {"type": "command", shape.command_key: line, name: shape.shorter.get(event, limit)}
    if wish.fail_closed and _has_member(client, event):
        hook[_ON_FAILURE[0]] = _ON_FAILURE[1]
    return hook if shape.form is HookForm.FLAT else {"hooks": [hook]}


def _has_member(client: Client, event: str) -> bool:
    """Whether the entry of an event says what happens if the hook fails."""
    shape = shape_of(client)
    return shape.fail_closed is FailClosed.MEMBER and event == shape.decides


def _refreshed(client: Client, found: FoundHook, ours: Installation, wish: HookWish) -> list[Edit]:
    """Returns edits that bring one hook up to date, and leave the rest of its entry alone."""
    closed = wish.fail_closed or found.command.refuses_on_failure
    line = _command(client, found.event, ours, closed, found.command).line()
    member = found.entry.member(shape_of(client).command_key)
    assert member is not None, "it was found by its command"
    edits: list[Edit] = []
    if member.node.string != line:
        edits.append(Edit(member.node.start, member.node.end, JSON.quote(line)))
    name, value = _ON_FAILURE
    if wish.fail_closed and _has_member(client, found.event):
        there = found.entry.get(name)
        if there is None:
            edits.append(JSON.add_member(found.entry.members[-1], name, JSON.quote(value)))
        elif there.string != value:
            edits.append(Edit(there.start, there.end, JSON.quote(value)))
    return edits


# The edits


def _insertions(client: Client, root: Node, items: dict[str, Any]) -> list[Edit]:
    table = hooks_table(client, root)
    if not items:
        return []
    unit = _indentation(root)
    if table is None:
        return _new_members(root, {"hooks": {event: [item] for event, item in items.items()}}, unit)
    lists = {event: table.get(event) for event in items}
    edits = [
        _appended(found, items[event], unit) for event, found in lists.items() if found is not None
    ]
    new = {event: [items[event]] for event, found in lists.items() if found is None}
    return edits + _new_members(table, new, unit)


def _new_members(table: Node, values: dict[str, Any], unit: str) -> list[Edit]:
    if not table.members:
        inside = table.start + 1
        raws = [f"{JSON.quote(name)}: {_written(v, chr(10), unit)}" for name, v in values.items()]
        return [Edit(inside, inside, ", ".join(raws))] if raws else []
    last = table.members[-1]
    lead = white_before(table.text, last.start)
    return [JSON.add_member(last, name, _written(v, lead, unit)) for name, v in values.items()]


def _appended(found: Node, item: Any, unit: str) -> Edit:
    lead = white_before(found.text, found.items[-1].start) if found.items else ""
    comma = f",{lead}" if "\n" in lead else ", "
    return append(found, [_written(item, lead, unit)], comma)


def _written(value: Any, lead: str, unit: str) -> str:
    """Writes a value on several lines if its neighbours are on lines of their own."""
    if "\n" not in lead:
        return json.dumps(value, ensure_ascii=False)
    newline = "\r\n" if "\r\n" in lead else "\n"
    text = json.dumps(value, indent=unit, ensure_ascii=False)
    return text.replace("\n", newline + lead.rpartition("\n")[2])


def _indentation(root: Node) -> str:
    white = white_before(root.text, root.members[0].start) if root.members else ""
    return white.rpartition("\n")[2] or "  "


def _removals(
    client: Client, root: Node, ours: list[FoundHook], was_there: Callable[..., bool]
) -> list[Edit]:
    table = hooks_table(client, root)
    if table is None or not ours:
        return []
    gone = []
    edits: list[Edit] = []
    for member in table.members:
        here = [each for each in ours if each.event == member.name]
        empties, inner = _from_list(member.node, here)
        if here and len(empties) == len(member.node.items) and not was_there("hooks", member.name):
            gone.append(member)
        elif here:
            edits += drop(member.node, empties) + inner
    if gone and len(gone) == len(table.members) and not was_there("hooks"):
        whole = root.member("hooks")
        assert whole is not None, "its table was found"
        return JSON.remove_members(root, [whole])
    return edits + JSON.remove_members(table, gone)


def _from_list(found: Node, ours: list[FoundHook]) -> tuple[list[int], list[Edit]]:
    """Returns the items that become empty, and the edits inside of those that do not."""
    empties: list[int] = []
    edits: list[Edit] = []
    for at, item in enumerate(found.items):
        here = [each for each in ours if each.at == at]
        within = [each.within for each in here if each.within is not None]
        inside = item.get("hooks") if item.kind is Kind.TABLE else None
        if here and (inside is None or len(within) == len(inside.items)):
            empties.append(at)
        elif within and inside is not None:
            edits += drop(inside, within)
    return empties, edits
