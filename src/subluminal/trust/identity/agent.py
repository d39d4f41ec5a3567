"""Finds out who acts: agent, client, principal and workload (Pack section 5).

The SUB_* variables come first, then other signs in the environment, then the parent's name.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from subluminal.config import env
from subluminal.config.places import recordable
from subluminal.contracts.identity import Identity, Workload
from subluminal.contracts.vocabulary import Client, Env, EnvSource
from subluminal.system.processes import command, process
from subluminal.trust.identity.machine import has_terminal
from subluminal.trust.identity.workload import find_principal, find_workload

# Variables that clients set for their children.
_CLIENT_MARKS = (
    ("CLAUDECODE", Client.CLAUDE),
    ("CODEX_THREAD_ID", Client.CODEX),
    ("GEMINI_CLI", Client.GEMINI),
    ("OPENCODE", Client.OPENCODE),
    ("COPILOT_AGENT_SESSION_ID", Client.COPILOT),
    ("CURSOR_AGENT", Client.CURSOR),
)
_CLIENT_PROCESSES = (
    ("codex", Client.CODEX),
    ("claude", Client.CLAUDE),
    ("opencode", Client.OPENCODE),
    ("copilot", Client.COPILOT),
)
# Variables of a desktop session. DISPLAY is not one: servers without a screen set it too.
_DESKTOP_MARKS = ("XDG_CURRENT_DESKTOP", "DESKTOP_SESSION", "__CFBundleIdentifier", "VSCODE_PID")
_DESKTOP_PROGRAMS = ("claude-desktop", "cursor", "code", "electron")
"""Clients with a window. Some of them clear the environment of their servers."""
_Word = TypeVar("_Word", Client, Env)
_names: dict[int, str] = {}
"""Names of parent processes that were looked up: `ps` takes 10 ms."""


class FoundEnv(NamedTuple):
    """An environment, how it was found out, and the words in which it was given, if it was."""

    env: Env
    source: EnvSource | None
    given: str = ""


def identity_of(environ: Mapping[str, str], cwd: str, parent: int | None = None) -> Identity:
    """Returns the identity that events carry and policy selectors match.

    `parent` is the process of the client; None for the parent of this process.
    """
    parent = os.getppid() if parent is None else parent
    workload = _given_workload(environ) or find_workload(environ, cwd)
    where, source, given = find_env(environ, workload, parent)
    found = Identity(
        agent_id=environ.get(env.SUB_AGENT_ID.name) or "unknown",
        client=_client(environ, parent),
        env=where,
        environment=given,
        env_source=source,
        principal=environ.get(env.SUB_PRINCIPAL.name) or find_principal(environ, workload),
        workload=workload,
    )
    return recordable_identity(found)


def recordable_identity(found: Identity) -> Identity:
    """Returns an identity that can be written as UTF-8: directories may have names of any bytes."""
    try:
        msgspec.json.encode(found)
    except UnicodeEncodeError:
        return msgspec.convert(_recordable(msgspec.to_builtins(found)), Identity)
    return found


def _recordable(value: Any) -> Any:
    if isinstance(value, dict):
        return {recordable(key): _recordable(each) for key, each in value.items()}
    return recordable(value) if isinstance(value, str) else value


def _name_of(pid: int) -> str:
    if pid not in _names:
        found = process(pid)
        _names[pid] = found.name.lower() if found else ""
    return _names[pid]


def _client(environ: Mapping[str, str], parent: int) -> Client:
    given = environ.get(env.SUB_CLIENT.name)
    if given:
        return _member(Client, given, Client.CUSTOM)
    for mark, client in _CLIENT_MARKS:
        if environ.get(mark):
            return client
    for name, client in _CLIENT_PROCESSES:
        if name in _name_of(parent):
            return client
    return Client.UNKNOWN


def find_env(environ: Mapping[str, str], workload: Workload, parent: int) -> FoundEnv:
    """Returns the environment and how it was found out; UNKNOWN and None if nothing shows it."""
    given = environ.get(env.SUB_ENV.name)
    if given:
        return given_env(given)
    # Systems that the table of `ci_systems` does not have set this variable too.
    if isinstance(workload.ci_provider, str) or environ.get("CI", "").lower() in ("true", "1"):
        return FoundEnv(Env.CI, EnvSource.CI)
    if has_terminal() or _is_codex_daemon(parent):
        return FoundEnv(Env.DEV, EnvSource.TERMINAL)
    if any(map(environ.get, _DESKTOP_MARKS)) or _name_of(parent) in _DESKTOP_PROGRAMS:
        return FoundEnv(Env.DEV, EnvSource.DESKTOP)
    return FoundEnv(Env.UNKNOWN, None)


def given_env(name: str) -> FoundEnv:
    """Returns an environment that a person named, in any words."""
    return FoundEnv(_member(Env, name, Env.UNKNOWN), EnvSource.GIVEN, name)


def _is_codex_daemon(pid: int) -> bool:
    """Interactive Codex starts servers in a daemon, which has left the person's terminal."""
    return b"--managed-daemon" in command(pid)


def _member(kind: type[_Word], word: str, otherwise: _Word) -> _Word:
    try:
        return kind(word)
    except ValueError:
        return otherwise


def _given_workload(environ: Mapping[str, str]) -> Workload | None:
    text = environ.get(env.SUB_WORKLOAD.name)
    if not text:
        return None
    try:
        workload = msgspec.json.decode(text, type=Workload)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return None
    return None if workload == Workload() else workload
