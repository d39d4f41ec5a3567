"""Approves the command that a server's stored secrets serve, and finds servers without one."""

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from subluminal.config.loading import load_settings
from subluminal.config.places import Places
from subluminal.config.settings import ServerSettings, Settings
from subluminal.contracts.vocabulary import SecretSource
from subluminal.errors import UsageError
from subluminal.importer.approving import also_decides, approval_of, configured_commands, left_out
from subluminal.importer.clients.description import Scene
from subluminal.importer.settings_file import Approval, change_settings
from subluminal.secrets.approval import (
    approve_line,
    has_stored_bindings,
    problem_with,
)


class Approved(NamedTuple):
    """An approval that was written."""

    approval: Approval
    variables: list[str]
    """variables that the command gets from stored secrets"""
    replaced: list[str] | None
    """the command that was approved before; None if there was none, or the same one"""
    not_passed: list[str]
    """variables of this terminal that the command will not get"""
    trusts: str
    """what else decides which code is run; empty if nothing does"""


class Unapproved(NamedTuple):
    """A server whose stored secrets serve no command."""

    server: str
    problem: str
    hint: str


def approve_command(
    places: Places, scene: Scene, server: str, command: Sequence[str], variables: Sequence[str]
) -> Approved:
    """Approves a command for a server's stored secrets, and writes that into `config.toml`.

    `variables` are `NAME=VALUE`, which the command gets with that value, or `NAME`, which it gets
    from the client.
    """
    set_, passed = _read(variables)
    approval = approval_of(command, scene.environ, scene.cwd, set_)._replace(pass_env=passed)
    known = load_settings(places.settings).servers.get(server, ServerSettings())
    change_settings(places, approvals={server: approval})
    return Approved(
        approval,
        [b.inject_as for b in known.secret_bindings if b.source is not SecretSource.ENV],
        known.command if known.command != approval.command else None,
        left_out(approval, scene.environ, [*known.pass_env, *known.env]),
        also_decides(approval.command, scene),
    )


def command_missing(scene: Scene, server: str) -> UsageError:
    """The error for an approval without a command; its hint has the one of the user's entry."""
    return UsageError("the server's command is missing", hint=_how(scene, server))


def unapproved_servers(settings: Settings, scene: Scene) -> Iterator[Unapproved]:
    """Yields every server with stored secrets that no command would get."""
    for name, server in settings.servers.items():
        if not has_stored_bindings(server):
            continue
        if not server.command:
            problem = "no command is approved for its stored secrets"
        else:
            problem = problem_with(server.command, scene.cwd) or _missing(server.command[0])
            problem = problem and f"its approved command cannot be used: {problem}"
        if problem:
            yield Unapproved(name, problem, _how(scene, name))


def _how(scene: Scene, server: str) -> str:
    found = next(configured_commands(scene, server), None)
    if found is None:
        return f"run `{approve_line(server)}` with the command of its entry"
    return f"if you trust its command, run `{approve_line(server, found)}`"


def _missing(program: str) -> str:
    return "" if os.access(program, os.X_OK) else f"`{program}` is not a program"


def _read(variables: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    set_: dict[str, str] = {}
    passed: list[str] = []
    for word in variables:
        name, equals, value = word.partition("=")
        if not name or "\0" in word:
            raise UsageError(f"`{word}` does not name a variable", hint="write NAME or NAME=VALUE")
        if equals:
            set_[name] = value
        else:
            passed.append(name)
    return set_, tuple(passed)
