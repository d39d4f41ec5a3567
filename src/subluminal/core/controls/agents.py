"""The registry: agents that a person registered, and agents that a person revoked.

    $SUB_HOME/state/agents/agent-AGENT      one sealed file per agent
                           index            sealed: which files are current, who is revoked
                    revoked/AGENT           one per revoked agent; that it exists is enough

Nothing that is done to these files gives an agent more trust (local-is-not-trusted). An agent's
file counts only if this home sealed it for this agent, and if the index says that it is the current
one: an older file that is put back does not count. Without a sound index nobody is registered. An
agent is revoked if the index or a file says so.

Every change moves the number of the kill switch (`stops.announce`) after the files are in place, so
that every process notices. This module imports little, because shims ask `is_revoked`.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from subluminal.config.places import encode_name, make_private_dir
from subluminal.config.private_files import is_aside
from subluminal.core.controls.sealed import SealBroken, seal_key, unseal, write_sealed
from subluminal.core.controls.stops import announce

if TYPE_CHECKING:  # whoever only asks `is_revoked` does not load the structs
    from subluminal.contracts.agents import Registration

_AGENT, _REVOKED = "agents/agent-", "revoked/"
"""Files of agents, below the directory of the state: the two kinds, each with its purpose."""
_PURPOSES = {_AGENT: "agent", _REVOKED: "agent-revoked"}
_INDEX = "agents/index"
_INDEX_PURPOSE = "agents-index"
_MAX_BYTES = 1 << 20
_MAX_INDEX_BYTES = 1 << 24


class AgentIsRevoked(Exception):
    """A revoked agent cannot be registered again."""


class Standing(NamedTuple):
    """What the registry says about an agent."""

    registration: "Registration | None" = None
    """the registration, also of a revoked agent; None if there is none that counts"""
    is_revoked: bool = False
    problem: str = ""
    """why the agent's file does not count although it exists, or empty"""


class Roster(NamedTuple):
    """Every agent of the registry."""

    registrations: "list[Registration]"
    """sorted by id, the revoked ones too"""
    problems: list[str]
    """one sentence for each file that does not count"""


class _Named(msgspec.Struct, frozen=True):
    agent_id: str


class _Index(msgspec.Struct, frozen=True):
    agents: dict[str, str]
    """digest of each agent's current file, by the agent's encoded name"""
    revoked: list[str]
    """encoded names of the agents that are revoked"""


def agents_dir(state_dir: str) -> str:
    """Returns the directory of the registry."""
    return os.path.join(state_dir, "agents")


def is_revoked(state_dir: str, agent_id: str) -> bool:
    """Whether every call of the agent is to be refused; also if that cannot be found out."""
    name = encode_name(agent_id)
    if _has_tombstone(state_dir, name):
        return True
    try:
        index = _read_index(state_dir)
    except (OSError, SealBroken, ValueError):
        return False  # nobody is registered then
    return index is not None and name in index.revoked


def standing(state_dir: str, agent_id: str) -> Standing:
    """Returns what the registry says about an agent. A damaged file is as good as none."""
    revoked = is_revoked(state_dir, agent_id)
    path = os.path.join(state_dir, _AGENT + encode_name(agent_id))
    problem = ""
    try:
        if os.path.lexists(path):
            return Standing(_current(state_dir, agent_id, revoked), revoked)
    except SealBroken:
        problem = f"`{path}` does not count: it or the index was edited, or another home wrote it"
    except OSError as error:
        problem = f"`{path}` cannot be read: {(error.strerror or str(error)).lower()}"
    except ValueError as error:
        problem = f"`{path}` does not count: {error}"
    return Standing(_kept(state_dir, agent_id) if revoked else None, revoked, problem)


def roster(state_dir: str) -> Roster:
    """Returns every agent of the registry. Raises OSError."""
    found: dict[str, Registration] = {}
    problems: list[str] = []
    for kind in (_AGENT, _REVOKED):
        for name in _names(state_dir, kind):
            each = standing(state_dir, _id_of(state_dir, kind, name))
            if each.registration is not None:
                found[each.registration.agent_id] = each.registration
            elif kind == _AGENT:
                path = os.path.join(state_dir, kind + name)
                problems.append(each.problem or f"`{path}` does not count")
    return Roster([found[agent_id] for agent_id in sorted(found)], problems)


def register(state_dir: str, registration: "Registration") -> None:
    """Registers an agent or changes its registration. Raises AgentIsRevoked or OSError."""
    with _changing(state_dir) as index:
        name = encode_name(registration.agent_id)
        if name in index.revoked or _has_tombstone(state_dir, name):
            raise AgentIsRevoked(registration.agent_id)
        _write(state_dir, index, registration)


def revoke(state_dir: str, registration: "Registration") -> None:
    """Revokes an agent for good: once this returns, no process allows its calls. Raises OSError."""
    from subluminal.contracts.vocabulary import AgentState

    name = encode_name(registration.agent_id)
    revoked = msgspec.structs.replace(registration, state=AgentState.REVOKED)
    # First of all, and without waiting for a lock: from here on the agent is revoked.
    _seal(state_dir, _REVOKED, name, msgspec.json.encode(revoked))
    announce(state_dir)
    with _changing(state_dir) as index:
        _write(state_dir, index, revoked)


@contextmanager
def _changing(state_dir: str) -> Iterator[_Index]:
    """Keeps other writers out, hands out the index to change, writes it, and moves the number."""
    fd = os.open(make_private_dir(agents_dir(state_dir)), os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        index = _index_to_change(state_dir)
        yield index
        data = msgspec.json.encode(index)
        write_sealed(os.path.join(state_dir, _INDEX), seal_key(state_dir), _INDEX_PURPOSE, data)
        # INVARIANT: the number moves after the files are in place. A process that sees the new
        # number sees them.
        announce(state_dir)
    finally:
        os.close(fd)


def _index_to_change(state_dir: str) -> _Index:
    """Returns the index. A damaged one is begun anew, without registrations."""
    try:
        found = _read_index(state_dir)
    except (SealBroken, ValueError):
        found = None
    index = found or _Index({}, [])
    kept = [name for name in _names(state_dir, _REVOKED) if name not in index.revoked]
    index.revoked.extend(kept)
    return index


def _write(state_dir: str, index: _Index, registration: "Registration") -> None:
    data = msgspec.json.encode(registration)
    name = encode_name(registration.agent_id)
    _seal(state_dir, _AGENT, name, data)
    index.agents[name] = _digest(data)


def _seal(state_dir: str, kind: str, name: str, data: bytes) -> None:
    write_sealed(os.path.join(state_dir, kind + name), seal_key(state_dir), _PURPOSES[kind], data)


def _current(state_dir: str, agent_id: str, revoked: bool) -> "Registration":
    """Returns the registration in an agent's file. Raises OSError, SealBroken or ValueError."""
    from subluminal.contracts.vocabulary import AgentState

    found, digest = _unsealed(state_dir, _AGENT, agent_id)
    index = _read_index(state_dir)
    if index is None or index.agents.get(encode_name(agent_id)) != digest:
        raise ValueError("it is not the newest of this agent")
    return msgspec.structs.replace(found, state=AgentState.REVOKED) if revoked else found


def _kept(state_dir: str, agent_id: str) -> "Registration | None":
    """Returns the registration that was kept when the agent was revoked; None if it is damaged."""
    try:
        return _unsealed(state_dir, _REVOKED, agent_id)[0]
    except (OSError, SealBroken, ValueError):
        return None


def _unsealed(state_dir: str, kind: str, agent_id: str) -> "tuple[Registration, str]":
    """Returns the registration in a file, and the file's digest."""
    from subluminal.contracts.agents import Registration

    path = os.path.join(state_dir, kind + encode_name(agent_id))
    data = unseal(path, seal_key(state_dir), _PURPOSES[kind], _MAX_BYTES)
    try:
        found = msgspec.json.decode(data, type=Registration)
    except msgspec.MsgspecError:
        raise ValueError("another version of sub wrote it") from None
    if found.agent_id != agent_id:
        raise ValueError("it is another agent's file")
    return found, _digest(data)


def _read_index(state_dir: str) -> _Index | None:
    """Returns the index; None if there is none. Raises OSError, SealBroken or ValueError."""
    path = os.path.join(state_dir, _INDEX)
    if not os.path.lexists(path):
        return None
    data = unseal(path, seal_key(state_dir), _INDEX_PURPOSE, _MAX_INDEX_BYTES)
    try:
        return msgspec.json.decode(data, type=_Index)
    except msgspec.MsgspecError:
        raise ValueError("another version of sub wrote the index") from None


def _has_tombstone(state_dir: str, name: str) -> bool:
    try:
        os.lstat(os.path.join(state_dir, _REVOKED + name))
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        return os.path.isdir(state_dir)  # without a home there is nothing to be revoked in
    except OSError:
        return True
    return True


def _names(state_dir: str, kind: str) -> list[str]:
    """Returns the encoded names of all agents with a file of a kind, sorted. Raises OSError."""
    directory, prefix = kind.split("/")
    try:
        files = sorted(os.listdir(os.path.join(state_dir, directory)))
    except FileNotFoundError:
        return []
    return [
        file.removeprefix(prefix)
        for file in files
        if file.startswith(prefix) and not is_aside(file)
    ]


def _id_of(state_dir: str, kind: str, name: str) -> str:
    """Returns the id that a sealed file is for; the encoded name if the file cannot be trusted."""
    path = os.path.join(state_dir, kind + name)
    try:
        data = unseal(path, seal_key(state_dir), _PURPOSES[kind], _MAX_BYTES)
        agent_id = msgspec.json.decode(data, type=_Named).agent_id
    except (OSError, SealBroken, msgspec.MsgspecError):
        return name
    return agent_id if encode_name(agent_id) == name else name


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
