"""The run of `sub run` on record: opened before the agent starts, closed after it is gone.

`sub run` takes part in the run like a shim, so no shim is ever the last one to leave (shared-runs).
"""

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import UNSET

from subluminal.config.loading import load_settings
from subluminal.config.places import Places, recordable
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Layer, RunStatus
from subluminal.core.host import Host
from subluminal.core.runs.opening import problem_of
from subluminal.core.runs.run import Run
from subluminal.errors import SubluminalError
from subluminal.export.violations import NO_DEMANDS, SILENT_STATE, Demands
from subluminal.operator.running.servers import Silent, heard_servers
from subluminal.operator.running.stamping import Stamp
from subluminal.policy.evaluation import Engine
from subluminal.state.errors import StateUnusable

_COMPILE_S = 60.0
"""An agent can wait to be started, a hundred at once on two CPUs. A call cannot (fast-start)."""
_SELECTED = ("namespace", "service_account", "repo", "branch")
NOTHING: Mapping[str, Any] = MappingProxyType({})
_PATIENCE_S = 5.0
"""How long to wait for a lock that a stopped process holds."""


class RunRecord:
    """One run, open until `close`."""

    def __init__(self, host: Host, run: Run) -> None:
        self._host = host
        self._run = run

    @classmethod
    def open(
        cls,
        open_host: Callable[..., Host],
        places: Places,
        stamp: Stamp,
        policy: str | None,
        cwd: str,
        demands: Demands = NO_DEMANDS,
        meta: Mapping[str, Any] = NOTHING,
    ) -> "RunRecord":
        """Opens the run. Raises SubluminalError: a run that cannot be recorded is not started.

        Nor is a strict run without a policy that applies to it.
        """
        host = open_host(
            places,
            environ=stamp.environ,
            cwd=cwd,
            identity=stamp.identity,
            run_id=stamp.run_id,
            policy=policy,
            settings=load_settings(places.settings),
        )
        try:
            _load_policies(host, strict=demands.strict is not None)
            if demands.strict is not None:
                _need_policy(host.engine, stamp, policy, cwd)
            parent = stamp.parent_run_id
            started_by = {} if parent is None else {"parent_run_id": parent}
            run = host.open_run({**meta, **started_by, **demands.meta()})
            problem = problem_of(run)
            if problem is not None:
                raise problem
        except BaseException:
            host.close()
            raise
        return cls(host, run)

    def shim_pids(self) -> frozenset[int]:
        """Returns the living processes that take part in the run, without this one."""
        try:
            return frozenset(shim.pid for shim in self._run.state.live_shims()) - {os.getpid()}
        except StateUnusable:
            return frozenset()  # the state was damaged: nobody knows who takes part

    def note(self, state: str, pid: int, detail: str) -> None:
        """Records a step in the life of the agent's processes."""
        self._run.health(state, pid=pid, detail=detail)

    def why_stopped(self) -> str:
        """Returns who stopped the run with `sub kill`, and why; empty if nobody did."""
        return self._run.why_stopped()

    def note_silent(self, silent: Silent) -> None:
        """Records a server that no shim spoke for."""
        named = {} if silent.server is None else {"server_name": silent.server}
        self._run.health(SILENT_STATE, detail=recordable(silent.why), **named)

    def heard(self, journals: str) -> frozenset[str]:
        """Returns the servers whose shims took part since this process opened the run."""
        return heard_servers(journals, self._run.shim_id)

    def close(self, status: RunStatus, reason: str | None) -> RunStatus:
        """Writes run_end, whoever else is still there; TERMINATED goes before any exit code."""
        ended = self._run.end(status, reason, patience_s=_PATIENCE_S)
        self._host.close()
        return ended


def _load_policies(host: Host, *, strict: bool) -> None:
    """Waits for the policies. Raises SubluminalError if one should be in force and is not."""
    host.tick(0, force=True)
    host.await_policies(_COMPILE_S)
    if strict:
        host.give_up_waiting()
    refusal = host.refusal
    if refusal is not None:
        raise SubluminalError(
            refusal.summary, hint="every call would be refused; mend the policy first"
        )
    host.stop_watching()


def _need_policy(engine: Engine, stamp: Stamp, policy: str | None, cwd: str) -> None:
    """Raises SubluminalError if calls of the run would pass for want of a policy."""
    if not engine.policies:
        hint = "give one with --policy, or put it into `.subluminal/policy.yaml`"
        if os.path.exists(os.path.join(cwd, ".subluminal", "policy.yaml")):
            # As in a container that runs as another user than the one who checked it out.
            hint = "`.subluminal/policy.yaml` is another user's; if you trust it, name it: --policy"
        raise SubluminalError("--strict needs a policy, and there is none", hint=hint)
    if engine.applying and (policy is None or Layer.REPOSITORY in engine.applying):
        return
    name = policy or ", ".join(f"`{each.policy_id}`" for each in engine.policies)
    raise SubluminalError(
        f"--strict needs a policy that applies, and the selectors of {name} do not match this run",
        hint=f"it has {_described(stamp.identity)}; `sub policy explain` tells more",
    )


def _described(who: Identity) -> str:
    """All that selectors look at, as far as it is known."""
    told = [f"env {who.env.value}", f"agent_id `{who.agent_id}`", f"client {who.client.value}"]
    for name in _SELECTED:
        value = getattr(who.workload, name)
        if value is not UNSET:
            told.append(f"{name} `{value}`")
    labels = {} if who.workload.labels is UNSET else who.workload.labels
    return ", ".join([*told, *(f"label {key}=`{value}`" for key, value in labels.items())])
