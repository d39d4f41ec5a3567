"""One guard for each agent of a program, all in the same run and under the same policies.

A call may come from any agent, and an agent's name, token and stops belong to its guard.
"""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from fnmatch import fnmatchcase
from typing import Any, NamedTuple
from weakref import finalize

from subluminal.adapters.in_process.guarding.calls import Wanted
from subluminal.adapters.in_process.guarding.reports import Reports
from subluminal.config.places import make_private_dir, places
from subluminal.config.private_files import write_aside
from subluminal.config.settings import TargetSettings
from subluminal.contracts.call import BUILT_IN, Given
from subluminal.contracts.counters import Counters
from subluminal.contracts.gate import Settled
from subluminal.core.host import Host
from subluminal.core.ruling import Ruling
from subluminal.errors import PolicyError, SubluminalError
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.snapshot import Snapshot
from subluminal.sdk.guard import Guard
from subluminal.spm.policies import Loaded
from subluminal.spm.trust import environ_in
from subluminal.spm.types import AgentActionRequest

_MOST_GUARDS = 64
"""Most agents whose guards are kept open. Names of agents come from outside."""
_MOST_TOOLS = 4_096
_RELOAD_S = 30.0
_LOOK_S = 0.01
_SERVER = "python"


class Touching(NamedTuple):
    """Which arguments say what a tool touches, as far as the rules of plugins ask."""

    commands: tuple[str, ...] = ()
    """globs of tools whose argument `command` is a command line"""
    urls: tuple[str, ...] = ()
    """globs of tools whose argument `url` is a URL"""

    def of(self, tool: str) -> TargetSettings | None:
        """Returns what is known about a tool; None if that is nothing."""
        command = any(fnmatchcase(tool, each) for each in self.commands)
        url = any(fnmatchcase(tool, each) for each in self.urls)
        if not command and not url:
            return None
        return TargetSettings(command="command" if command else None, url="url" if url else None)


class Door(Guard):
    """A guard with the ways in that a check needs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._touching = Touching()
        self._declared: set[str] = set()
        self._checks: set[str] = set()
        """request_ids of checks whose calls have not ended"""

    def wanted(self, request: AgentActionRequest, given: Given) -> Wanted:
        """Returns a call as it would be made; the id of its request is on record."""
        action, identity = request.action, request.action.tool_identity
        tool = action.tool_name
        if tool not in self._declared:
            self._declare(tool)
        provider = None if identity is None else identity.provider
        found = self._arguments(action.tool_args)
        self._checks.add(request.request_id)
        return Wanted(_SERVER, tool, found, provider or BUILT_IN, given, request.request_id)

    def _declare(self, tool: str) -> None:
        found = self._touching.of(tool)
        if found is not None:
            self._host.declare_targets(_SERVER, tool, found)
        if len(self._declared) < _MOST_TOOLS:  # names of tools come from outside
            self._declared.add(tool)

    def leave(self, request_id: str) -> None:
        """Says that the call of a check has ended."""
        self._checks.discard(request_id)

    @property
    def is_idle(self) -> bool:
        """Whether no call is under way."""
        return not self._checks

    @property
    def host(self) -> Host:
        """Where calls are decided and recorded."""
        return self._host

    def begin(self, wanted: Wanted, retry_of: str | None, added: Settled | None) -> Ruling:
        """Decides and records a try of a call."""
        return self._begin(wanted, retry_of, added)

    def counters(self) -> AbstractContextManager[Counters]:
        """Gives the counters of the run, to count for oneself."""
        return self._host.counters(self._scope())

    def report_to(self, reports: Reports) -> None:
        """Tells the program of bugs."""
        self._host.on_bug = reports.bug

    @property
    def environment(self) -> str:
        """The environment of the run, as written."""
        identity = self._host.identity
        return identity.environment or identity.env.value

    def add_policies(self, snapshots: Sequence[Snapshot], touching: Touching) -> None:
        """Puts policies of the program itself into force, beside those in files."""
        self._touching = touching
        self._declared.clear()
        self._host.add_policies(snapshots)

    def await_policy(self, policy_hash: str) -> None:
        """Waits until a policy is in force that was just written. Raises PolicyError."""
        deadline = time.monotonic() + _RELOAD_S
        while True:
            self._host.tick(time.monotonic_ns() // 1_000_000, force=True)
            if any(each.policy_hash == policy_hash for each in self._host.engine.policies):
                return
            if time.monotonic() > deadline:
                raise PolicyError("the new policy did not come into force", hint="see `sub doctor`")
            time.sleep(_LOOK_S)


class Doors:
    """The guards of a program, opened when an agent makes its first call."""

    def __init__(
        self,
        home: str | os.PathLike[str] | None,
        run_id: str | None,
        environment: str | None,
        reports: Reports,
    ) -> None:
        self.places = places(environ_in(home))
        self._reports = reports
        self._home, self._run_id, self._environment = home, run_id, environment
        self._open: dict[tuple[str, str | None], Door] = {}
        self._path: str | None = None
        self._remove: Callable[[], object] = lambda: None
        """removes the file of the policy; the end of the interpreter does it too"""
        self._added: list[Snapshot] = []
        self._touching = Touching()
        self._is_closed = False

    def of(self, agent_id: str, token: str | None) -> Door:
        """Returns the guard of an agent. Raises PolicyError or SubluminalError."""
        if self._is_closed or self._path is None:
            raise SubluminalError("this AgentSecurity is shut down", hint="make another one")
        key = (agent_id, token)
        door = self._open.get(key)
        if door is None:
            # Two threads may both open one; the first that is kept serves both.
            made = self._made(agent_id, token)
            door = self._open.setdefault(key, made)
            if door is not made:
                made.close()
            self._drop_oldest(key)
        return door

    def put_policy(self, loaded: Loaded) -> None:
        """Puts a policy into force for all agents, now."""
        if self._path is None:
            directory = make_private_dir(os.path.join(self.places.cache, "given"))
            self._path = os.path.join(directory, f"spm-{os.urandom(8).hex()}.json")
            self._remove = finalize(self, _remove_in, os.getpid(), self._path)
        os.replace(write_aside(self._path, loaded.text), self._path)
        policy_hash = compile_bundle(loaded.bundle).policy_hash
        for door in list(self._open.values()):
            door.await_policy(policy_hash)

    def put_rules(self, snapshots: Sequence[Snapshot], touching: Touching) -> None:
        """Puts the rules of plugins into force for all agents, in place of those before."""
        self._added, self._touching = list(snapshots), touching
        for door in list(self._open.values()):
            door.add_policies(self._added, touching)

    def close(self) -> None:
        """Closes all guards."""
        self._is_closed = True
        while self._open:
            self._open.popitem()[1].close()
        self._remove()

    def _made(self, agent_id: str, token: str | None) -> Door:
        door = Door(
            agent_id=agent_id,
            server=_SERVER,
            policy=self._path,
            run_id=self._run_id,
            env=self._environment,
            attestation=token,
            home=self._home,
        )
        if self._added:
            door.add_policies(self._added, self._touching)
        door.report_to(self._reports)
        return door

    def _drop_oldest(self, key: tuple[str, str | None]) -> None:
        for oldest, door in list(self._open.items()):
            if len(self._open) <= _MOST_GUARDS:
                return
            if oldest != key and door.is_idle and self._open.pop(oldest, None) is door:
                door.close()


def _remove_in(pid: int, path: str) -> None:
    """Removes a file in the process that wrote it; forked children need it no less."""
    if os.getpid() == pid:
        with suppress(OSError):
            os.unlink(path)
