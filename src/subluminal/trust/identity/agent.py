"""Finds out who acts: agent, client, principal and workload (Pack section 5).

The SUB_* variables come first, then other signs in the environment and in /proc.
"""

import os
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from subluminal.config import env
from subluminal.config.places import recordable
from subluminal.contracts.identity import Identity, Workload
from subluminal.contracts.vocabulary import Client, Env
from subluminal.trust.identity.workload import find_principal, find_workload

# Variables that clients set for their children. Clients that the Pack does not list are `custom`.
_CLIENT_MARKS = (
    ("CLAUDECODE", Client.CLAUDE),
    ("CODEX_THREAD_ID", Client.CODEX),
    ("GEMINI_CLI", Client.CUSTOM),
    ("OPENCODE", Client.CUSTOM),
    ("COPILOT_AGENT_SESSION_ID", Client.CUSTOM),
)
_CLIENT_PROCESSES = (("codex", Client.CODEX), ("claude", Client.CLAUDE))
_Word = TypeVar("_Word", Client, Env)


def identity_of(environ: Mapping[str, str], cwd: str) -> Identity:
    """Returns the identity that events carry and policy selectors match."""
    workload = _given_workload(environ) or find_workload(environ, cwd)
    found = Identity(
        agent_id=environ.get(env.SUB_AGENT_ID.name) or "unknown",
        client=_client(environ),
        env=_env(environ, workload),
        principal=environ.get(env.SUB_PRINCIPAL.name) or find_principal(environ),
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


def parent_is(name: str) -> bool:
    """Returns True if the name of the parent process, the client, contains this word."""
    try:
        with open(f"/proc/{os.getppid()}/comm", encoding="utf-8", errors="replace") as file:
            return name in file.read().lower()
    except OSError:
        return False


def _client(environ: Mapping[str, str]) -> Client:
    given = environ.get(env.SUB_CLIENT.name)
    if given:
        return _member(Client, given, Client.CUSTOM)
    for mark, client in _CLIENT_MARKS:
        if environ.get(mark):
            return client
    for name, client in _CLIENT_PROCESSES:
        if parent_is(name):
            return client
    return Client.UNKNOWN


def _env(environ: Mapping[str, str], workload: Workload) -> Env:
    given = environ.get(env.SUB_ENV.name)
    if given:
        return _member(Env, given, Env.UNKNOWN)
    return Env.CI if isinstance(workload.ci_provider, str) else Env.UNKNOWN


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
