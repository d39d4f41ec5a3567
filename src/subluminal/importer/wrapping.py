"""Edits that add a wrapper to an entry, refresh it, or remove it.

Pure: from a tree to a list of edits. Removing is the exact inverse of adding: the text of the
server's own command, with its escapes and quotes, moves into the arguments and back.
"""

from collections.abc import Collection
from typing import NamedTuple

from subluminal.config import env
from subluminal.importer.clients.description import Client, Scope
from subluminal.importer.document import Entry, env_of
from subluminal.importer.overrides import reserved_members
from subluminal.importer.text import notation
from subluminal.importer.text.notation import Edit
from subluminal.importer.text.tree import Kind, Member
from subluminal.importer.wrapper import Installation, Wrapped, Wrapper, recognise

PASSED_VARIABLES = (*(v.name for v in env.IDENTITY_VARIABLES), env.SUB_POLICY.name)
"""Variables that a shim needs; a client that clears the environment must be told to pass them."""


class Before(NamedTuple):
    """Facts about an entry before it was wrapped that its current text does not show."""

    had_args: bool = True
    env_vars: Collection[str] = ()
    had_env_vars: bool = False


def wanted_wrapper(
    entry: Entry, ours: Installation, found: Wrapped | None, scope: Scope | None
) -> Wrapper:
    """Returns the wrapper that an entry should have."""
    policy = found.wrapper.policy if found and scope is not Scope.PROJECT else None
    return Wrapper(ours.program, entry.server, ours.home, policy)


def wrap(
    client: Client, entry: Entry, ours: Installation, scope: Scope | None = None
) -> list[Edit]:
    """Returns edits that make the entry start through our shim; none if it already does.

    In a project's file they also remove what such a file may not set.
    """
    found = recognise(entry.argv)
    words = wanted_wrapper(entry, ours, found, scope).words()
    length = found.length if found else 0
    edits: list[Edit] = []
    if entry.argv[:length] != words:
        raws = _raws(client, entry, words)
        if client.shape.command_is_list:
            edits = _prefix_list(entry, raws, length)
        else:
            edits = _prefix_command(client, entry, raws, length)
    return edits + _pass_variables(client, entry) + _drop_reserved(client, entry, scope)


def _drop_reserved(client: Client, entry: Entry, scope: Scope | None) -> list[Edit]:
    members = reserved_members(client, entry, scope)
    table = env_of(entry, client)
    return client.notation.remove_members(table, members) if table and members else []


def unwrap(client: Client, entry: Entry, before: Before) -> list[Edit]:
    """Returns edits that make the entry start without a shim; none if it is not wrapped."""
    found = recognise(entry.argv)
    if found is None:
        return []
    command = _member(entry, "command")
    if client.shape.command_is_list:
        return notation.drop(command.node, range(found.length))
    edits = [Edit(command.node.start, command.node.end, entry.words[found.length].raw)]
    args = _member(entry, "args")
    gone: list[Member] = []
    if found.length == len(args.node.items) and not before.had_args:
        gone.append(args)
    else:
        edits += notation.drop(args.node, range(found.length))
    passed = _passed(client, entry)
    if passed is not None:
        added = set(PASSED_VARIABLES).difference(before.env_vars)
        ours = [at for at, item in enumerate(passed.node.items) if item.string in added]
        if len(ours) == len(passed.node.items) and not before.had_env_vars:
            gone.append(passed)
        else:
            edits += notation.drop(passed.node, ours)
    return edits + client.notation.remove_members(entry.node, gone)


def _passed(client: Client, entry: Entry) -> Member | None:
    """Returns the list of variables that the client passes to the server."""
    key = client.shape.env_vars_key
    member = entry.node.member(key) if key else None
    return member if member is not None and member.node.kind is Kind.LIST else None


def _member(entry: Entry, name: str) -> Member:
    member = entry.node.member(name)
    assert member is not None, "every stdio entry has this member"
    return member


def _raws(client: Client, entry: Entry, words: list[str]) -> list[str]:
    """Returns words in the file's notation, with the server's name as the file spells it."""
    name_at = words.index("--server") + 1
    return [
        entry.raw_server if at == name_at else client.notation.quote(word)
        for at, word in enumerate(words)
    ]


def _prefix_list(entry: Entry, raws: list[str], length: int) -> list[Edit]:
    command = _member(entry, "command")
    if length:
        start, end = entry.words[0].start, entry.words[length - 1].end
        return [Edit(start, end, ", ".join(raws))]
    return [notation.prepend(command.node, raws, ", ")]


def _prefix_command(client: Client, entry: Entry, raws: list[str], length: int) -> list[Edit]:
    command, args = _member(entry, "command"), entry.node.member("args")
    comma = client.notation.comma(command)
    program = Edit(command.node.start, command.node.end, raws[0])
    if length:
        start, end = entry.words[1].start, entry.words[length - 1].end
        return [program, Edit(start, end, comma.join(raws[1:]))]
    moved = [*raws[1:], command.node.raw]
    if args is None:
        new = f"[{comma.join(moved)}]"
        return [program, client.notation.add_member(command, "args", new)]
    return [program, notation.prepend(args.node, moved, comma)]


def _pass_variables(client: Client, entry: Entry) -> list[Edit]:
    key = client.shape.env_vars_key
    if key is None:
        return []
    passed = entry.node.member(key)
    if passed is None:
        after = entry.node.member("args") or _member(entry, "command")
        raw = f"[{', '.join(client.notation.quote(name) for name in PASSED_VARIABLES)}]"
        return [client.notation.add_member(after, key, raw)]
    there = {item.string for item in passed.node.items}
    missing = [client.notation.quote(name) for name in PASSED_VARIABLES if name not in there]
    if passed.node.kind is not Kind.LIST or not missing:
        return []
    return [notation.append(passed.node, missing, ", ")]
