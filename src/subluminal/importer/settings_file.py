"""Edits `config.toml`: adds bindings and approvals. Everything the user wrote there is kept."""

import os
import tomllib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from subluminal.config.loading import parse_settings
from subluminal.config.places import Places
from subluminal.contracts.bindings import SecretBinding
from subluminal.errors import SubluminalError
from subluminal.importer.files import read_config, replace
from subluminal.importer.text.notation import TOML
from subluminal.importer.text.toml_edits import appended, assigned
from subluminal.secrets.private_files import write_private


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
    after = appended(text, lines)
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
    text = assigned(text, (*table, "command"), approval.command, path)
    if "env" not in known:
        text = assigned(text, (*table, "env"), dict(approval.env), path)
    else:
        for name, value in approval.env.items():
            text = assigned(text, (*table, "env", name), value, path)
    passed = list(dict.fromkeys([*known.get("pass_env", ()), *approval.pass_env]))
    if approval.pass_env:
        text = assigned(text, (*table, "pass_env"), passed, path)
    return text
