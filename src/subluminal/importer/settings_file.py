"""Edits `config.toml`: adds bindings and approvals. Everything the user wrote there is kept.

An edit is tried in several places, and the first result with exactly the wanted settings is used.
"""

import copy
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from subluminal.config.loading import parse_settings
from subluminal.config.places import Places
from subluminal.contracts.bindings import SecretBinding
from subluminal.errors import SubluminalError
from subluminal.importer.files import read_config, replace
from subluminal.importer.text.notation import TOML, Edit, apply_edits
from subluminal.importer.text.tree import Node
from subluminal.secrets.private_files import write_private

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"^[ \t]*\[[^\[\r\n].*?(?=\r?$)", re.MULTILINE)


class Approval(NamedTuple):
    """A command that a person approved for a server's stored secrets."""

    command: list[str]
    env: Mapping[str, str]
    """variables that it gets with these values"""
    pass_env: tuple[str, ...] = ()
    """variables that it gets from the client"""


def change_settings(
    places: Places,
    bindings: Iterable[tuple[str, SecretBinding]] = (),
    approvals: Mapping[str, Approval] | None = None,
) -> None:
    """Adds bindings and approvals by server name, durably."""
    exists = os.path.exists(places.settings)
    found = read_config(places.settings) if exists else None
    text = found.data.decode("utf-8") if found else ""
    for server, approval in (approvals or {}).items():
        text = _approved(text, server, approval, places.settings)
    for server, binding in bindings:
        text = _bound(text, server, binding, places.settings)
    parse_settings(text.encode("utf-8"), places.settings)
    if found:
        replace(found, text.encode("utf-8"))
    else:
        write_private(places.settings, text.encode("utf-8"))


def _bound(text: str, server: str, binding: SecretBinding, path: str) -> str:
    lines = [
        f"[[servers.{TOML.quote(server)}.secret_bindings]]",
        f"inject_as = {TOML.quote(binding.inject_as)}",
        f"secret_ref = {TOML.quote(binding.secret_ref)}",
        f"source = {TOML.quote(binding.source.value)}",
    ]
    after = _appended(text, lines)
    try:
        tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        raise SubluminalError(
            f"cannot add bindings to `{path}`: it already has `secret_bindings` of the same server "
            "in another notation",
            hint="rewrite them as `[[servers.NAME.secret_bindings]]` tables, then try again",
        ) from None
    return after


def _approved(text: str, server: str, approval: Approval, path: str) -> str:
    table = ("servers", server)
    known = tomllib.loads(text).get("servers", {}).get(server, {})
    text = _assigned(text, (*table, "command"), approval.command, path)
    if "env" not in known:
        text = _assigned(text, (*table, "env"), dict(approval.env), path)
    else:
        for name, value in approval.env.items():
            text = _assigned(text, (*table, "env", name), value, path)
    passed = list(dict.fromkeys([*known.get("pass_env", ()), *approval.pass_env]))
    if approval.pass_env:
        text = _assigned(text, (*table, "pass_env"), passed, path)
    return text


def _assigned(text: str, keys: tuple[str, ...], value: Any, path: str) -> str:
    """Returns the text with one value set, in the first place that means exactly that."""
    wanted = copy.deepcopy(tomllib.loads(text))
    owner = wanted
    for key in keys[:-1]:
        owner = owner.setdefault(key, {})
    owner[keys[-1]] = value
    for candidate in _candidates(text, keys, _literal(value)):
        try:
            if tomllib.loads(candidate) == wanted:
                return candidate
        except tomllib.TOMLDecodeError:
            continue
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
    yield _appended(text, [f"[{'.'.join(_key(key) for key in keys[:-1])}]", f"{name} = {raw}"])


def _find(root: Node, keys: tuple[str, ...]) -> Node | None:
    """Returns a table; None if it does not exist."""
    table: Node | None = root
    for key in keys:
        table = table.get(key) if table else None
    return table


def _appended(text: str, lines: list[str]) -> str:
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
