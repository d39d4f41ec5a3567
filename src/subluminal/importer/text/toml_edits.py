"""Sets and removes single values in TOML. Everything else in the text is kept.

An edit is tried in several places, and the first result that means exactly what is wanted is used.
"""

import copy
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from subluminal.errors import SubluminalError
from subluminal.importer.text.notation import TOML, Edit, apply_edits
from subluminal.importer.text.tree import Node

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"^[ \t]*\[[^\[\r\n].*?(?=\r?$)", re.MULTILINE)


def assigned(text: str, keys: tuple[str, ...], value: Any, path: str) -> str:
    """Returns the text with one value set, in the first place that means exactly that."""
    wanted = _load(text)
    owner = wanted
    for key in keys[:-1]:
        owner = owner.setdefault(key, {})
    owner[keys[-1]] = value
    for candidate in _candidates(text, keys, _literal(value)):
        if _loaded(candidate) == wanted:
            return candidate
    dotted = ".".join(keys[:-1])
    raise SubluminalError(
        f"cannot add `{keys[-1]}` to `{path}`: its notation of `[{dotted}]` is not understood",
        hint=f"write `{keys[-1]} = {_literal(value)}` under `[{dotted}]` by hand",
    )


def _candidates(text: str, keys: tuple[str, ...], raw: str) -> Iterator[str]:
    name = _key(keys[-1])
    owner = _find(TOML.parse(text), keys[:-1])
    if owner is not None:
        there = owner.member(keys[-1])
        if there is not None:
            yield apply_edits(text, [Edit(there.node.start, there.node.end, raw)])
        for sibling in reversed(owner.members):
            if sibling.node.start >= 0:
                yield apply_edits(text, [TOML.add_member(sibling, name, raw)])
        for header in _HEADER.finditer(text):
            at = header.end()
            yield apply_edits(text, [Edit(at, at, f"{_newline(text)}{name} = {raw}")])
    yield appended(text, [f"[{'.'.join(_key(key) for key in keys[:-1])}]", f"{name} = {raw}"])


def _find(root: Node, keys: tuple[str, ...]) -> Node | None:
    """Returns a table; None if it does not exist."""
    table: Node | None = root
    for key in keys:
        table = table.get(key) if table else None
    return table


def _load(text: str) -> dict[str, Any]:
    return tomllib.loads(text, parse_float=str)  # as text, because nan is not equal to itself


def _loaded(text: str) -> dict[str, Any] | None:
    """Returns what a text says; None if it is not TOML."""
    try:
        return _load(text)
    except tomllib.TOMLDecodeError:
        return None


def removed(text: str, keys: tuple[str, ...]) -> str:
    """Returns the text without one value, and without its table if that is empty then."""
    wanted = _load(text)
    owner = wanted
    for key in keys[:-1]:
        owner = owner.get(key, {})
    if owner.pop(keys[-1], None) is None:
        return text
    pruned = copy.deepcopy(wanted)
    _prune(pruned, keys[:-1])
    for candidate in _without(text, keys):
        if _loaded(candidate) in (pruned, wanted):
            return candidate
    raise SubluminalError(
        f"cannot remove `{keys[-1]}` of `{keys[-2]}`: its notation is not understood",
        hint="remove it by hand",
    )


def _prune(tables: dict[str, Any], keys: tuple[str, ...]) -> None:
    """Removes tables that are empty, from the innermost one up."""
    if keys and isinstance(tables.get(keys[0]), dict):
        _prune(tables[keys[0]], keys[1:])
        if not tables[keys[0]]:
            del tables[keys[0]]


def _without(text: str, keys: tuple[str, ...]) -> Iterator[str]:
    owner = _find(TOML.parse(text), keys[:-1])
    assert owner is not None, "the value was found"
    member = owner.member(keys[-1])
    assert member is not None, "the value was found"
    headers = [each.start() for each in _HEADER.finditer(text) if each.start() < member.start]
    if headers and not member.inline:
        # As `appended` wrote it: a blank line, a header, and this one line.
        newline = _newline(text)
        before, end = text[: headers[-1]], text.find("\n", member.node.end) + 1 or len(text)
        has_blank = before == newline or before.endswith(newline * 2)
        yield (before.removesuffix(newline) if has_blank else before) + text[end:]
    yield apply_edits(text, TOML.remove_members(owner, [member]))


def appended(text: str, lines: list[str]) -> str:
    """Returns the text with a paragraph at its end."""
    newline = _newline(text)
    start = text if not text or text.endswith("\n") else text + newline
    space = newline if start else ""
    return start + space + "".join(line + newline for line in lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else TOML.quote(name)


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{_key(name)} = {_literal(each)}" for name, each in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, list):
        return f"[{', '.join(_literal(each) for each in value)}]"
    return TOML.quote(str(value))
