"""One guard for each agent of a program, all in the same run and under the same policies.

A call may come from any agent, and an agent's name, token and stops belong to its guard.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any
from weakref import finalize

from msgspec import field
from msgspec.structs import replace

from subluminal.adapters.in_process.guarding.calls import GuardedCall, Wanted
from subluminal.config.places import Places, make_private_dir, places
from subluminal.config.private_files import write_aside
from subluminal.config.settings import ApprovalSettings, TargetSettings
from subluminal.contracts.call import BUILT_IN, Given, ToolCall
from subluminal.contracts.decision import Decision
from subluminal.contracts.gate import Settled
from subluminal.core.foreseeing import foresee
from subluminal.core.ruling import Ruling
from subluminal.errors import PolicyError, SubluminalError
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.snapshot import Snapshot
from subluminal.sdk.guard import Guard
from subluminal.spm.policies import Loaded
from subluminal.spm.trust import environ_in

_MOST_GUARDS = 64
"""Most agents whose guards are kept open. Names of agents come from outside."""
_RELOAD_S = 30.0
_LOOK_S = 0.01
_SERVER = "python"


class Noted(Wanted):
    """A call with notes that are recorded in its context."""

    notes: dict[str, str] = field(default_factory=dict)

    def call(self, retry_of: str | None = None, added: Settled | None = None) -> ToolCall:
        """Returns the call as the core takes it."""
        found, given = super().call(retry_of, added), self.given
        if given is None or not self.notes:
            return found
        return replace(found, given=replace(given, context={**given.context, **self.notes}))


class Door(Guard):
    """A guard with the ways in that a check needs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.runners: frozenset[str] = frozenset()
        """globs of tools whose argument `command` is a command line"""
        self._declared: set[str] = set()

    def wanted(
        self, tool: str, args: dict[str, Any], given: Given, provider: str | None
    ) -> "Noted":
        """Returns a call as it would be made."""
        if tool not in self._declared and any(fnmatchcase(tool, each) for each in self.runners):
            self._host.declare_targets(_SERVER, tool, TargetSettings(command="command"))
            self._declared.add(tool)
        return Noted(_SERVER, tool, self._arguments(args), provider or BUILT_IN, given)

    def foresee(self, wanted: "Noted") -> Decision:
        """Returns what would be decided about a call. Counts and records nothing."""
        return foresee(self._host, wanted.call(), wanted.arguments.text, self.run_id)

    def decide(self, wanted: "Noted") -> GuardedCall:
        """Returns a call, to be begun."""
        return self._call(wanted)

    def refuse(self, wanted: "Noted", code: str, message: str) -> GuardedCall:
        """Returns a call that is refused and recorded when it begins, whatever rules say."""

        def begin(refused: Wanted, *_: object) -> Ruling:
            return self._host.refuse(refused.call(), code, message, self.run_id)

        return GuardedCall(self._host, wanted, begin)

    @property
    def places(self) -> Places:
        """The home."""
        return self._host.places

    @property
    def approvals(self) -> ApprovalSettings:
        """Which tickets are accepted."""
        return self._host.settings.approvals

    @property
    def environment(self) -> str:
        """The environment of the run, as written."""
        identity = self._host.identity
        return identity.environment or identity.env.value

    def add_policies(self, snapshots: Sequence[Snapshot]) -> None:
        """Puts policies of the program itself into force, beside those in files."""
        self._host.add_policies(snapshots)

    def await_policy(self, policy_hash: str) -> None:
        """Waits until a policy is in force that was just written. Raises PolicyError."""
        deadline = time.monotonic() + _RELOAD_S
        while True:
            self._host.tick(time.monotonic_ns() // 1_000_000, force=True)
            if any(each.policy_hash == policy_hash for each in self._host.engine.policies):
                return
            if time.monotonic() > deadline:
                raise PolicyError("the new policy did not come into force")
            time.sleep(_LOOK_S)


class Doors:
    """The guards of a program, opened when an agent makes its first call."""

    def __init__(
        self,
        home: str | os.PathLike[str] | None,
        run_id: str | None,
        environment: str | None,
    ) -> None:
        self.places = places(environ_in(home))
        self._home, self._run_id, self._environment = home, run_id, environment
        self._open: dict[tuple[str, str | None], Door] = {}
        self._path: str | None = None
        self._remove: Callable[[], object] = lambda: None
        """removes the file of the policy; the end of the interpreter does it too"""
        self._added: list[Snapshot] = []
        self._runners: frozenset[str] = frozenset()
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

    def put_rules(self, snapshots: Sequence[Snapshot], runners: Iterable[str]) -> None:
        """Puts the rules of plugins into force for all agents, in place of those before.

        `runners` are globs of tools whose argument `command` is a command line.
        """
        self._added, self._runners = list(snapshots), frozenset(runners)
        for door in list(self._open.values()):
            door.add_policies(self._added)
            door.runners = self._runners

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
            door.add_policies(self._added)
        door.runners = self._runners
        return door

    def _drop_oldest(self, key: tuple[str, str | None]) -> None:
        while len(self._open) > _MOST_GUARDS:
            oldest = next(each for each in list(self._open) if each != key)
            self._open.pop(oldest).close()


def _remove_in(pid: int, path: str) -> None:
    """Removes a file in the process that wrote it; forked children need it no less."""
    if os.getpid() == pid:
        with suppress(OSError):
            os.unlink(path)
