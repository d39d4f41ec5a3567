"""Runs that are made in virtual time by the real enforcer, journal and state, and replayed.

Several shims of one run in one process: what decides is real, only the clock is the test's.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import UNSET, Raw
from tests.ledger.home import Home

from subluminal.canonical import args_hash, encode
from subluminal.clock import Now
from subluminal.config.settings import RedactSettings
from subluminal.contracts.call import ToolCall
from subluminal.contracts.events import PolicyLoad, PolicyLoaded
from subluminal.contracts.identity import Identity, Source
from subluminal.contracts.limits import MAX_INSPECT_BYTES, MAX_PREVIEW_BYTES
from subluminal.contracts.vocabulary import ErrorClass, Layer, Status, Transport
from subluminal.core import enforcer as enforcer_module
from subluminal.core.controls import grants, stops
from subluminal.core.controls.approval_files import Slot
from subluminal.core.controls.approvals import Approvals
from subluminal.core.controls.kill_switch import KillSwitch
from subluminal.core.enforcer import CallEnding, Enforcer, Ruling
from subluminal.core.gates import Gates
from subluminal.core.records.previews import Previewer
from subluminal.core.records.redaction.redactor import redactor_for
from subluminal.core.runs import ending
from subluminal.core.runs import run as run_module
from subluminal.core.runs.run import Run
from subluminal.journal import Journal
from subluminal.ledger.query.replaying import LedgerReplay
from subluminal.policy.evaluation import Engine
from subluminal.policy.replay.comparing import Replayed
from subluminal.policy.snapshot import Snapshot
from subluminal.state.run_state import RunState

START_MS = 1_794_520_740_000
"""2026-11-12T21:59Z, a Thursday: near an hour and a day that generated rules ask for."""

Layers = list[tuple[Layer, Snapshot]]


class Clock:
    """Both clocks of the machine; the wall clock may be set, the other only goes on."""

    def __init__(self) -> None:
        self.wall_ns = START_MS * 1_000_000
        self.mono_ns = 5_000_000_777

    def time_ns(self) -> int:
        return self.wall_ns

    def monotonic_ns(self) -> int:
        return self.mono_ns

    def now(self) -> Now:
        return Now(self.wall_ns // 1_000_000, self.mono_ns // 1_000_000)

    def go(self, ms: float) -> None:
        self.wall_ns += int(ms * 1_000_000)
        self.mono_ns += int(ms * 1_000_000)


class Stage:
    """One home, in which runs are made and replayed from the ledger."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = Home(str(path))
        self.path = path
        self.clock = Clock()
        time = SimpleNamespace(time_ns=self.clock.time_ns, monotonic_ns=self.clock.monotonic_ns)
        monkeypatch.setattr(enforcer_module, "time", time)
        for module in (run_module, ending, grants, stops):
            monkeypatch.setattr(module, "now", self.clock.now)
        self._shims: list[Enforcer] = []

    def shim(
        self,
        layers: Layers,
        identity: Identity | None = None,
        *,
        run_id: str = "run",
        shim_id: str | None = None,
        record: str = "metadata",
        max_bytes: int = MAX_PREVIEW_BYTES,
        wait_ms: int | None = None,
    ) -> Enforcer:
        """A shim of a run, under these policies, which it records as it enters."""
        who = identity or Identity()
        shim_id = shim_id or f"{run_id}-shim-{len(self._shims)}"
        run = Run(
            run_id,
            who,
            Source(host_id="host", proc_id="proc", shim_id=shim_id),
            RunState.open(str(self.path / "state"), run_id, wait_ms=wait_ms),
            Journal(str(self.path / "journal" / run_id), shim_id, max_bytes=1 << 26),
        )
        previewer = Previewer(
            redactor_for(RedactSettings()),
            record_mode=record,
            max_bytes=max_bytes,
            full_bytes=MAX_INSPECT_BYTES,
        )
        gates = Gates(
            KillSwitch(self.home.places.state).view(run_id, who.agent_id),
            lambda: Approvals(self.home.places.state, run, previewer),
        )
        made = Enforcer(run, Engine(layers, who), previewer, gates, on_bug=_raise)
        self._shims.append(made)
        start = made.engine.start if made.engine.asks_taint else None
        run.enter(made.engine.mode, made.engine.policy, start=start)
        self.loaded(made, layers)
        return made

    def loaded(self, shim: Enforcer, layers: Layers, *, with_rules: bool = True) -> None:
        """Puts policies in force, and on record."""
        shim.engine = Engine(layers, shim.run.identity)
        for layer, snapshot in layers:
            shim.run.emit(
                PolicyLoaded,
                policy=snapshot.ref,
                load=PolicyLoad(layer=layer, ok=True, mode=snapshot.mode),
                snapshot=Raw(snapshot.to_json()) if with_rules else UNSET,
            )
        shim.flush()

    def begin(
        self,
        shim: Enforcer,
        server: str,
        tool: str,
        args: dict[str, Any] | None = None,
        **context: str,
    ) -> Ruling:
        """Makes a call. `args=None` with a stream hash was too large to inspect."""
        text = None if args is None else encode(args)
        call = ToolCall(
            server_name=server,
            tool_name=tool,
            args=args,
            args_hash="ab" * 32 if args is None else args_hash(args),
            bytes_in=10,
            transport=Transport.MCP_STDIO,
            context=context,
        )
        return shim.begin(call, text)

    def end(self, shim: Enforcer, ruling: Ruling, status: str = "OK") -> None:
        """Lets a call end."""
        failed = None if status == "OK" else ErrorClass.UPSTREAM_ERROR
        shim.finish(ruling, CallEnding(Status(status), 5, b"{}", error_class=failed))

    def call(self, shim: Enforcer, tool: str, args: dict[str, Any], status: str = "OK") -> Ruling:
        """A whole call of server `git`, a millisecond long."""
        self.clock.go(1)
        ruling = self.begin(shim, "git", tool, args)
        self.clock.go(1)
        if ruling.is_allowed:
            self.end(shim, ruling, status)
        return ruling

    def answer(self, run_id: str, slot: Slot, *, approve: bool, **grant: Any) -> None:
        """A person answers a pending approval, or gives a grant unasked."""
        self.clock.go(1)
        places = self.home.places
        waiting = [
            each
            for each in grants.all_waiting(places)
            if each.slot == slot and each.request.run_id == run_id
        ]
        if approve:
            grants.issue_grant(places, run_id, slot, **grant)
        elif waiting:
            grants.deny(places, waiting[0])
        self.clock.go(1)

    def stop(self, run_id: str, scope: str) -> None:
        """Uses the kill switch."""
        target = run_id if scope == "run" else ""
        state = self.home.places.state
        stops.set_stop(state, scope, target, by="me", reason="", hard=False)

    def revive(self, run_id: str) -> None:
        """Lifts whatever stops the run."""
        state = self.home.places.state
        stops.lift_stop(state, "run", run_id)
        stops.lift_stop(state, "all", "")

    def waiting(self, run_id: str) -> list[Slot]:
        """Returns the calls of a run that are waiting for approval."""
        found = grants.all_waiting(self.home.places)
        return [each.slot for each in found if each.request.run_id == run_id]

    def close_shims(self) -> None:
        """Ends the runs, and puts them into the ledger."""
        for shim in self._shims:
            shim.flush()
            shim.run.leave()
            shim.run.close()
        self._shims.clear()
        self.home.ingest()

    def replay(self, candidate: Snapshot, **options: Any) -> tuple[list[Replayed], LedgerReplay]:
        """Every call, decided again."""
        self.close_shims()
        replay = LedgerReplay(self.home.reader(), candidate, **options)
        return list(replay.rows()), replay

    def close(self) -> None:
        for shim in self._shims:
            shim.run.close()
        self.home.close()


def _raise(bug: Exception) -> None:
    raise bug
