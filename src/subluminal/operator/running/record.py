"""The run of `sub run` on record: opened before the agent starts, closed after it is gone (shared-runs).

`sub run` takes part in the run like a shim, so no shim is ever the last one out.
"""

import os
import time

from msgspec import UNSET

from subluminal.clock import now
from subluminal.config.places import Places
from subluminal.contracts.identity import Identity, Source
from subluminal.contracts.vocabulary import Layer, RunStatus
from subluminal.core.controls.kill_switch import is_run_stopped
from subluminal.core.host import record_loads
from subluminal.core.policies.layer import Load
from subluminal.core.policies.watching import Policies
from subluminal.core.runs.attendance import Attendance, forget_attendance, note_attendance
from subluminal.core.runs.ids import uuid7
from subluminal.core.runs.names import host_id, journal_dir
from subluminal.core.runs.run import Run, end_run
from subluminal.errors import SubluminalError
from subluminal.export.violations import NO_DEMANDS, Demands
from subluminal.journal import Journal
from subluminal.operator.running.stamping import Stamp
from subluminal.policy.evaluation import Engine
from subluminal.state.errors import StateBusy, StateUnusable
from subluminal.state.run_state import RunState

_MAX_JOURNAL_BYTES = 1 << 40
"""A run's first and last lines never rotate a journal."""
_COMPILE_S = 60.0
"""An agent can wait to be started, a hundred at once on two CPUs. A call cannot (fast-start)."""
_SELECTED = ("namespace", "service_account", "repo", "branch")
_LOOK_S, _MAX_LOOK_S = 0.005, 0.25
_PATIENCE_S = 5.0
"""For a lock that a stopped process holds."""


class RunRecord:
    """One run, open until `close`."""

    def __init__(self, run: Run, places: Places) -> None:
        self._run = run
        self._places = places

    @classmethod
    def open(
        cls,
        places: Places,
        stamp: Stamp,
        policy: str | None,
        cwd: str,
        demands: Demands = NO_DEMANDS,
    ) -> "RunRecord":
        """Opens the run. Raises SubluminalError: a run that cannot be recorded is not started.

        Nor is a strict one that no policy would hold.
        """
        engine, loads = _engine(places, stamp, policy, cwd, strict=demands.strict is not None)
        if demands.strict is not None:
            _need_policy(engine, stamp, policy, cwd)
        shim_id = uuid7()
        source = Source(host_id=host_id(places), proc_id=uuid7(), shim_id=shim_id)
        state = RunState.open(places.state, stamp.run_id)
        journal = Journal(journal_dir(places, stamp.run_id), shim_id, max_bytes=_MAX_JOURNAL_BYTES)
        run = Run(stamp.run_id, stamp.identity, source, state, journal)
        agent_id = stamp.identity.agent_id
        run.is_stopped = lambda: is_run_stopped(places.state, stamp.run_id, agent_id)
        run.enter(engine.mode, engine.policy, demands.meta())
        record_loads(run, loads)
        note_attendance(places, os.getpid(), Attendance(stamp.run_id, stamp.identity, source))
        return cls(run, places)

    def shim_pids(self) -> frozenset[int]:
        """The living processes that take part in the run, without this one."""
        return frozenset(shim.pid for shim in self._run.state.live_shims()) - {os.getpid()}

    def note(self, state: str, pid: int, detail: str) -> None:
        """Records a step in the life of the agent's processes."""
        self._run.health(state, pid=pid, detail=detail)

    def close(self, status: RunStatus, reason: str | None) -> RunStatus:
        """Writes run_end, whoever else is still there. TERMINATED goes before any exit code."""
        run = self._run
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                with run.state.locked():
                    run.state.detach(run.shim_id)
                    run.state.mark_ended()
                break
            except (StateBusy, StateUnusable):
                # The run is over all the same, and its journal says so.
                if time.monotonic() > deadline:
                    break
        terminated = run.state.terminated() is not None or run.is_stopped()
        run.record(lambda: end_run(run, status, reason))
        run.close()
        forget_attendance(self._places, os.getpid())
        return RunStatus.TERMINATED if terminated else status


def _engine(
    places: Places, stamp: Stamp, policy: str | None, cwd: str, *, strict: bool
) -> tuple[Engine, list[Load]]:
    """The policies that hold as the run begins, and what was loaded for it."""
    policies = Policies(places, stamp.identity, cwd, policy)
    deadline = time.monotonic() + _COMPILE_S
    look_s = _LOOK_S
    try:
        loads = policies.poll(now().mono_ms, force=True)
        while policies.loading and time.monotonic() < deadline:
            time.sleep(look_s)
            # Those who wait must not take the CPU from the compiler.
            look_s = min(2 * look_s, _MAX_LOOK_S)
            loads += policies.poll(now().mono_ms)
        if strict:
            policies.give_up_waiting()
        refusal = policies.refusal
        if refusal is not None:
            raise SubluminalError(
                refusal.summary, hint="every call would be refused; mend the policy first"
            )
        return policies.engine_for(stamp.run_id), loads
    finally:
        policies.close()


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
