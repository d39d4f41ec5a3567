"""The host: the one object that a door holds. It stands between a tool call and its decision.

    open      `wiring.open_host` puts a host together from settings, identity and policies
    begin     decides and journals a call; enters the run if this is its first call here. A call
              that another door has decided and offered is taken over instead
    finish    records how a call ended
    offer     lets a later door take an allowed call over (`core.handovers`)
    withdraw  takes the offer back, or learns that the call was taken over
    tick      checks policies, settings and stops for changes; a loop calls it every 50 ms or so
    close     leaves every run and closes every file

A door without a loop, or with several threads, uses a `ThreadedHost` (`core.threaded_host`), which
ticks by itself. No method awaits or starts a thread. `begin` and `finish` wait for the run's lock
and for nothing else.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from subluminal.config.settings import Settings
from subluminal.contracts.call import ToolCall
from subluminal.contracts.decision import Decision
from subluminal.contracts.vocabulary import Client, ReasonCode, RunStatus, Taint
from subluminal.core.controls.stops import Stop
from subluminal.core.enforcer import Enforcer
from subluminal.core.handing import HandsOver
from subluminal.core.live_settings import LiveSettings
from subluminal.core.records.listings import Definition, record_listing
from subluminal.core.records.previews import Previewer
from subluminal.core.ruling import CallEnding, Ruling, asked_of
from subluminal.core.runs.failures import MAX_STDERR_BYTES, SERVED, Served
from subluminal.core.runs.open_runs import OpenRuns, Parts
from subluminal.core.runs.run import Run
from subluminal.core.targets.source import Declared
from subluminal.core.tool_names import remember_tools
from subluminal.policy.evaluation import Engine

if TYPE_CHECKING:
    from subluminal.core.acting.acting import Acting
    from subluminal.core.bug_reports import BugReports
    from subluminal.policy.snapshot import Snapshot

_CHECK_EVERY_MS = 250
"""Shortest time between two checks whether the kill switch's file was removed or replaced."""
_LOOK_S, _MAX_LOOK_S = 0.005, 0.25
"""First and longest pause in `await_policies` between two checks of the compiler."""


def _nothing() -> None:
    """The default `settle` of `tick`, for a door that has nothing to settle."""


class Host(HandsOver):
    """One process' part in its runs, for use by one thread. `ThreadedHost` is for several."""

    def __init__(
        self, parts: Parts, settings: LiveSettings, *, run_id: str, run_is_fixed: bool = False
    ) -> None:
        """`run_id` is the run of every call that does not name its own run (shared-runs).

        If `run_is_fixed`, it is the run of all calls, whatever they name.
        """
        super().__init__(parts.places)
        self.identity = parts.identity
        self.run_id = run_id
        self.run_is_fixed = run_is_fixed
        self._policies, self._previewer = parts.policies, parts.previewer
        self._settings = settings
        self._generation = parts.policies.generation
        self._check_at_ms = 0
        self._bugs: BugReports | None = None
        self.on_bug: Callable[[Exception], object] | None = None
        """told of every bug of Subluminal; must not raise"""
        self._runs = OpenRuns(parts, settings.settings, on_bug=self.report_bug)
        self._open, self._partial = self._runs.open, self._runs.partial
        if parts.open_acting is not None:
            parts.policies.act_with(partial(self._open_acting, parts.open_acting))
        self._early_reads: dict[tuple[str, str, str | None], None] = {}
        """resources and prompts that were asked for while a policy was not in force"""

    # One call

    def begin(self, call: ToolCall, args_text: bytes | None, session: str | None = None) -> Ruling:
        """Decides one call; its start and decision are journalled when this returns.

        `session` is the run that the call itself names, or None. If another door has offered this
        very call, it is taken over: nothing is decided, counted or journalled, and `finish` records
        its end.
        """
        if self.offers.may_be_some():
            taken = self.take(call, session)
            if taken is not None:
                return taken
        # The fast way for nearly every call; `claim` is the same for all of them.
        if session is None and not self._partial:
            enforcer = self._open.get(self.run_id)
            if enforcer is not None and enforcer.claims is None:
                enforcer.open_calls += 1
                return enforcer.begin(call, args_text)
        enforcer = self.claim(session)
        return enforcer.begin(enforcer.with_claims(call), args_text)

    def begin_batch(
        self, batch: Sequence[tuple[ToolCall, bytes | None]], session: str | None = None
    ) -> list[Ruling]:
        """Decides the calls of one batch, each with its canonical arguments: all pass, or none.

        The calls of a batch are never taken over: they are decided together, or not at all.
        """
        from subluminal.core.batches import begin_batch  # only one revision of MCP has batches

        enforcer = self.claim(session)
        enforcer.open_calls += len(batch) - 1
        return begin_batch(enforcer, [(enforcer.with_claims(call), text) for call, text in batch])

    def begin_undecidable(
        self, call: ToolCall, reason: ReasonCode, summary: str, session: str | None = None
    ) -> Ruling:
        """Records a call that no policy can judge, and applies `decision_on_error`."""
        return self.claim(session).begin_undecidable(call, reason, summary)

    def refuse(
        self,
        call: ToolCall,
        reason: str,
        summary: str,
        session: str | None = None,
        by: Decision | None = None,
    ) -> Ruling:
        """Records and refuses a call that cannot be forwarded, whatever the policy says.

        `by` is the refusal that led to this one; its rule is named.
        """
        return self.claim(session).refuse(call, reason, summary, by)

    def is_over(self, call: ToolCall, session: str | None = None) -> bool:
        """Whether a call is stopped: by the kill switch, by the end of its run, or by a policy
        that should be in force and is not. Records nothing.
        """
        enforcer = self.claim(session)
        try:
            return enforcer.over(asked_of(call)) is not None
        finally:
            self.release(enforcer)

    def read_from(self, server_name: str, method: str, session: str | None = None) -> str:
        """Lowers the run, if a rule says so, before a resource or a prompt is asked for.

        Returns why it must not be asked for, in one sentence; empty if it may. If a policy that
        should be in force is not, the run is lowered as soon as it is: until then, all calls are
        refused.
        """
        if self.refusal is not None:
            self._early_reads[server_name, method, session] = None
        elif self._policies.engine_for(self.run_of(session)).asks_taint:
            enforcer = self.claim(session)
            try:
                return enforcer.read_from(server_name, method)
            finally:
                self.release(enforcer)
        return ""

    # The level of the run, for programs

    def taint(self, session: str | None = None) -> Taint:
        """Returns the level of a run; UNTRUSTED if its state cannot be read."""
        enforcer = self.claim(session)
        try:
            return enforcer.levels.now()
        finally:
            self.release(enforcer)

    def lower_taint(
        self, to: Taint, *, source: str, reason: str = "", session: str | None = None
    ) -> Taint:
        """Lowers a run because a program read something; call it before the text can act.

        `source` names what was read. Returns the level from then on; a run that is as low already
        stays as it is. Raises StateUnusable if the run cannot be lowered: then do not read.
        """
        enforcer = self.claim(session)
        try:
            return enforcer.levels.lower(to, f"{source}: {reason}" if reason else source)
        finally:
            self.release(enforcer)

    def finish(self, ruling: Ruling, outcome: CallEnding, at_ns: int | None = None) -> None:
        """Records how a call ended; a second end of the same call changes nothing.

        `at_ns` is the monotonic time at which the call ended; None for now. The end is on disk
        after the next `begin` or `flush`.
        """
        enforcer = ruling.enforcer
        if not ruling.finished and (ruling.handed is None or self.withdraw(ruling)):
            enforcer.open_calls -= 1
            enforcer.finish(ruling, outcome, at_ns)
            if ruling.handed is not None:
                self._ended_here.append(ruling)

    def take(self, call: ToolCall, session: str | None = None) -> Ruling | None:
        """Takes over a call that another door has offered; None if there is no such offer.

        A call that a pack has judged is never taken over: the other door did not ask the pack.
        """
        if call.judgement is not None:
            return None
        from subluminal.core.taking import take

        try:
            return take(self, self._handover_files(), call, session)
        except Exception as bug:  # noqa: BLE001 - the call is decided anew
            self.report_bug(bug)
            return None

    # Further rounds, and runs

    def begin_round(
        self, ruling: Ruling, number: int, bytes_in: int, args_text: bytes | None
    ) -> bool:
        """Decides a further round of a begun call, which is round `number` (every-mcp-era).

        Returns True if it may be forwarded. A refusal becomes the ruling's decision.
        """
        from subluminal.core.rounds import Round, begin_round  # most servers never ask for input

        round_ = Round(ruling, number, bytes_in, args_text)
        return begin_round(round_, self.settings.limits.max_rounds)

    def run_of(self, session: str | None) -> str:
        """Returns the run of a call; `session` is the run that the call itself names, or None."""
        return self.run_id if session is None or self.run_is_fixed else session

    def flush(self) -> None:
        """Writes buffered ends of calls to disk, and the number of events lost to a full disk."""
        if self._ended_here:
            self._settle(self._ended_here)
        self._runs.flush()

    def claim(self, session: str | None) -> Enforcer:
        """Returns the enforcer of a run and counts one open call; doors call `begin` instead."""
        run_id = self.run_of(session)
        enforcer = self._open.get(run_id)
        if enforcer is None or self._partial:
            enforcer = self._runs.enforcer(run_id)
        enforcer.open_calls += 1
        return enforcer

    # Changes of policies, settings and stops

    def tick(
        self, mono_ms: int, settle: Callable[[], None] = _nothing, *, force: bool = False
    ) -> Settings | None:
        """Puts changed policies, settings and stops into force; records them in every open run.

        Returns the settings if they changed: some of them are the door's to apply. `settle` is
        called just before new settings come into force, so that the door can record under the old
        ones what happened under the old ones. `force` checks the policy files even if it is early.
        """
        if mono_ms >= self._check_at_ms:
            self._check_at_ms = mono_ms + _CHECK_EVERY_MS
            self._runs.kill_switch.check()
            self.offers.check()
            if self._runs.finders.running:
                self._runs.finders.reap()
        loads = self._policies.poll(mono_ms, force=force)
        if self._policies.generation != self._generation:
            self._adopt_policies()
        if loads:
            self._runs.record_loads(loads)
        return self._poll_settings(mono_ms, settle)

    def _adopt_policies(self) -> None:
        self._generation = self._policies.generation
        self._runs.adopt_policies()
        if self._early_reads and self.refusal is None:
            early, self._early_reads = self._early_reads, {}
            for read in early:
                self.read_from(*read)

    def _poll_settings(self, mono_ms: int, settle: Callable[[], None]) -> Settings | None:
        change = self._settings.poll(mono_ms)
        if change is None:
            return None
        server = self._settings.server
        named = {} if server is None else {"server_name": server}
        if change.settings is None or change.previewer is None:
            self.health("degraded", detail=change.detail, **named)
            return None
        settle()
        self._runs.adopt_settings(change.previewer, change.settings)
        self.health("alive", detail=change.detail, **named)
        return change.settings

    def _open_acting(self, open_acting: "Callable[..., Acting]") -> "Acting":
        return open_acting(
            number=lambda: self._runs.kill_switch.look().number,
            quiet_hours=lambda: self.settings.trust.quiet_hours,
            mask=lambda token: self._previewer.adopt(self._settings.also_mask(token)),
        )

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._settings.settings

    @property
    def is_loading(self) -> bool:
        """Whether a first policy is still being compiled; doors hold calls for it (fast-start)."""
        return self._policies.loading

    def await_policies(self, wait_s: float) -> None:
        """Waits until no first policy is being compiled, for `wait_s` seconds at most."""
        deadline = time.monotonic() + wait_s
        pause_s = _LOOK_S
        self.tick(time.monotonic_ns() // 1_000_000)
        while self.is_loading and time.monotonic() < deadline:
            time.sleep(pause_s)
            # Waiting must not take the CPU from the compiler.
            pause_s = min(2 * pause_s, _MAX_LOOK_S)
            self.tick(time.monotonic_ns() // 1_000_000)

    def add_policies(self, snapshots: "Sequence[Snapshot]") -> None:
        """Puts policies of the program itself into force, beside those in files."""
        self._policies.add(snapshots)
        self._adopt_policies()

    def stop_watching(self) -> None:
        """Ends compilers that still run: from now on the policies stay as they are."""
        self._policies.close()

    def give_up_waiting(self) -> None:
        """Refuses calls from now on, instead of holding them, until the policy is compiled."""
        self._policies.give_up_waiting()
        self._adopt_policies()

    @property
    def engine(self) -> Engine:
        """The policies in force for the host's own run."""
        return self._policies.engine_for(self.run_id)

    @property
    def refusal(self) -> Decision | None:
        """The refusal of every call while a policy that should be in force is not; else None."""
        return self._policies.refusal

    def hard_stop(self, server_name: str) -> Stop | None:
        """Returns the stop that ends this server's process, or None.

        A process may serve several runs; it is ended only if each of them is under a hard stop.
        """
        if not self._runs.kill_switch.look().stops:
            return None
        views = [enforcer.gates.stops for enforcer in list(self._open.values())]
        views = views or [self._runs.no_run]
        found = [view.stops_server(server_name) for view in views]
        return found[0] if all(found) else None

    def warm(self) -> None:
        """Loads modules that the first call needs, before it arrives."""
        self._previewer.warm()

    @property
    def previewer(self) -> Previewer:
        """Masks what is recorded, under the settings in force."""
        return self._previewer

    @property
    def looked_at_bytes(self) -> int:
        """How many bytes of a result `finish` can use; the rest is not recorded."""
        return self._previewer.looked_at_bytes

    def declare_targets(self, server_name: str, tool_name: str, declared: Declared) -> None:
        """Takes what a program says about what its tool touches; settings may say more."""
        self._runs.targets.declare(server_name, tool_name, declared)

    # Records other than calls

    def identify(self, client: Client) -> None:
        """Sets the client that started the run, as far as no run is open yet."""
        if self._open or client is self.identity.client:
            return
        self.identity = replace(self.identity, client=client)
        self._policies.identify(self.identity)
        self._generation = self._policies.generation
        self._runs.identify(self.identity)

    def open_run(self, meta: dict[str, Any] | None = None, session: str | None = None) -> Run:
        """Enters a run if no call has entered it; `meta` goes into its run_start.

        `session` is the run that the client names, or None for the host's own.
        """
        return self._runs.enforcer(self.run_of(session), meta).run

    def end_run(self, run_id: str, failure: RunStatus | None = None) -> None:
        """Leaves one run and closes its files; the last process to leave a run ends it."""
        self._runs.end(run_id, failure)

    @property
    def policy_problem(self) -> str | None:
        """Why a policy that should be in force is not, in one sentence; None if all are."""
        return self._policies.problem

    @property
    def has_runs(self) -> bool:
        """Whether any run is open."""
        return bool(self._open)

    def tell(self, news: Callable[[Run], object]) -> None:
        """Calls `news` with every open run, and with each run that is entered later."""
        self._runs.tell(news)

    def health(self, state: str, **fields: Any) -> None:
        """Records a shim_health event in every run, including runs that were just left."""
        self._runs.health(state, **fields)

    def list_tools(self, server_name: str, cursor: str, tools: Sequence[Definition] | None) -> None:
        """Records a page of the server's tool list in every run, if it changed."""
        listing = self._runs.listings.changed(server_name, cursor, tools)
        if listing is not None:
            # A name with a secret in it is masked in the record, and is not stored at all here.
            safe = self._previewer.safe
            names = [tool.name for tool in tools or () if safe(tool.name) == tool.name]
            remember_tools(self.places, server_name, names)
            for enforcer in list(self._open.values()):
                record_listing(enforcer.run, listing)

    def masked_line(self, text: str) -> str:
        """Masks and cuts a line of a server's stderr for the record."""
        return self._previewer.sentence(text, MAX_STDERR_BYTES)

    def report_bug(self, bug: Exception) -> None:
        """Writes a report about a bug in Subluminal, and records its path in every run."""
        if self._bugs is None:
            from subluminal.core.bug_reports import BugReports  # most processes have no bug

            self._bugs = BugReports(self.places)
        if self.on_bug is not None:
            self.on_bug(bug)
        path = self._bugs.write(bug)
        if path is not None:
            self.health("degraded", detail=f"a bug in sub: {type(bug).__name__}, see `{path}`")

    # The end

    def leave(self, failure: RunStatus | None = None, served: Served = SERVED) -> None:
        """Leaves every run; the last process to leave a run ends it. Files stay open."""
        self._runs.leave_all(failure, served)
        if self._ended_here:
            self._settle(self._ended_here)

    def close(self, failure: RunStatus | None = None, served: Served = SERVED) -> None:
        """Leaves the runs that are still open, and closes every file."""
        if self._open:
            self.leave(failure, served)
        if self._ended_here:
            self._settle(self._ended_here)
        self._policies.close()
        self._runs.close()
        self.offers.close()
