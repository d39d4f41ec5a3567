"""Runs an agent as one run, from its first process to its last, and leaves the evidence."""

import os
import signal
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from subluminal.config import env
from subluminal.config.places import Places
from subluminal.contracts.vocabulary import RunStatus
from subluminal.core.acting.launches import forget_launch
from subluminal.core.host import Host
from subluminal.core.runs.living import lives
from subluminal.core.runs.names import journal_dir
from subluminal.errors import SubluminalError
from subluminal.export.violations import NO_DEMANDS, Demands
from subluminal.ledger.client.roll_call import close_what_died
from subluminal.ledger.daemon.instance import read_note
from subluminal.operator.running.agent import Agent, CannotStart, Ended, adjusted, sweep
from subluminal.operator.running.delegating import find_parent, note_delegation
from subluminal.operator.running.evidence import Evidence, Left
from subluminal.operator.running.home import Home, find_home
from subluminal.operator.running.record import RunRecord
from subluminal.operator.running.servers import Servers, read_servers, runs_hooks, told_silent
from subluminal.operator.running.stamping import Stamp, Wishes, stamp
from subluminal.operator.tainting import level_for_child
from subluminal.supervise import become_subreaper

if TYPE_CHECKING:
    from subluminal.importer.expected import Expectation

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Tell = Callable[[str], None]
Warn = Callable[[str, str], None]
"""Gets what is wrong, and what to do about it."""


class Order(NamedTuple):
    """What to run, and what the run must leave."""

    command: list[str]
    wishes: Wishes
    demands: Demands = NO_DEMANDS
    events: str | None = None
    """file to stream events to; `-` is stdout"""
    artifact: str | None = None
    """directory for the artifact"""
    to_terminal: bool = False
    """whether stdout is a terminal, which must not act on text from tools"""


class _Stage(NamedTuple):
    """What one run works with."""

    demands: Demands
    evidence: Evidence
    home: Home
    open_host: Callable[..., Host]
    tell: Tell
    warn: Warn


def run_agent(
    order: Order,
    environ: Mapping[str, str],
    open_host: Callable[..., Host],
    *,
    tell: Tell,
    warn: Warn,
    announce: Tell,
    shown: Callable[[str], str],
) -> Left:
    """Runs the agent to its end.

    `open_host` is wiring's. `tell` and `warn` get notes for the person. `announce` gets the id of
    the run just before the agent starts. `shown` makes text from tools safe for a terminal. Raises
    SubluminalError if the run cannot be recorded as ordered; then the agent was not started.
    """
    evidence = Evidence(
        order.events, order.artifact, order.demands, shown, to_terminal=order.to_terminal
    )
    try:
        home = find_home(environ, evidence.artifact, is_streamed=evidence.is_streamed)
        try:
            stage = _Stage(order.demands, evidence, home, open_host, tell, warn)
            return _run(order, {**environ, **home.environ}, stage, announce)
        finally:
            home.remove()
    finally:
        evidence.close()


def _run(order: Order, environ: Mapping[str, str], stage: _Stage, announce: Tell) -> Left:
    if stage.home.is_temporary:
        stage.tell("cannot write to the home, so only the events or artifact of this run will stay")
    cwd = os.getcwd()
    where = stage.home.places
    parent = find_parent(where, environ)
    stamped = stamp(
        order.wishes,
        order.command,
        environ,
        cwd,
        lambda run_id: lives(where, run_id),
        lambda run_id: level_for_child(where, run_id),
        None if parent is None else parent.run_id,
    )
    sealed, shown = note_delegation(where, stamped, parent, environ)
    if shown is not None and shown.proof.problem:
        stage.warn(
            f"the agent's token is refused: {shown.proof.problem}",
            shown.hint or f"`sub agents show {stamped.identity.agent_id}` says what proves it",
        )
    try:
        return _recorded(order, stamped, cwd, stage, announce)
    finally:
        if sealed is not None:
            forget_launch(sealed)


def _recorded(order: Order, stamped: Stamp, cwd: str, stage: _Stage, announce: Tell) -> Left:
    where = stage.home.places
    policy = stamped.environ.get(env.SUB_POLICY.name)
    watch = _Watch(order, stamped, where, cwd)
    record = RunRecord.open(
        stage.open_host, where, stamped, policy, cwd, order.demands, watch.servers.meta()
    )
    command, note = adjusted(order.command)
    if note:
        stage.tell(note)
    watch.warn_before(stage.warn)
    announce(stamped.run_id)
    try:
        code = _attend(command, stamped, record, stage, watch)
    except CannotStart as problem:
        left = stage.evidence.end(problem.exit_code)
        text = f"cannot start `{command[0]}`: {problem}"
        left.problems.insert(0, SubluminalError(text, hint="give a program that is on the PATH"))
        return left
    return stage.evidence.end(code)


class _Watch:
    """What is known of the agent's servers while the run goes on."""

    def __init__(self, order: Order, stamped: Stamp, where: Places, cwd: str) -> None:
        self._order, self._stamped = order, stamped
        self._where, self._cwd = where, cwd
        expectation = self._read()
        hooked = expectation is not None and runs_hooks(expectation.client, stamped.environ, cwd)
        self.servers = Servers(expectation, has_hooks=hooked)

    def _read(self) -> "Expectation | None":
        client = self._order.wishes.client
        command, environ = self._order.command, self._stamped.environ
        return read_servers(client, command, environ, self._cwd, self._where.home)

    def warn_before(self, warn: Warn) -> None:
        """Warns about servers whose calls will not be seen."""
        text = self.servers.warning(self._order.demands.allow_silent)
        if text is not None:
            warn(text, self.servers.hint())

    def conclude(self, record: RunRecord, stage: _Stage) -> None:
        """Records the servers that were not seen, and names them."""
        # The agent may have changed its configuration, and started itself again.
        self.servers.also(self._read())
        journals = journal_dir(self._where, self._stamped.run_id)
        silent = self.servers.silent(record.heard(journals))
        for each in silent:
            record.note_silent(each)
        allowed = stage.demands.allow_silent
        left = [each for each in silent if each.server is None or each.server not in allowed]
        if left and stage.demands.strict is None:
            stage.warn(f"not seen in this run: {told_silent(left)}", self.servers.hint())
        elif stage.demands.strict is not None and self._is_unknown:
            stage.tell(self._unknown())

    @property
    def _is_unknown(self) -> bool:
        return not self.servers.is_known and self._order.wishes.client is None

    def _unknown(self) -> str:
        program = os.path.basename(self._order.command[0])
        return (
            f"`{program}` is not a client that `sub import` knows, so servers that it started "
            "without a shim were not noticed"
        )


def _attend(
    command: list[str], stamped: Stamp, record: RunRecord, stage: _Stage, watch: _Watch
) -> int:
    """Starts the agent, waits for its end and closes the run; returns the agent's exit code."""
    become_subreaper()
    evidence, home = stage.evidence, stage.home
    journals = journal_dir(home.places, stamped.run_id)
    try:
        agent = Agent(command, stamped.environ, talks_to_stderr=evidence.takes_stdout)
    except CannotStart as problem:
        record.close(RunStatus.FAILED, f"cannot start the agent: {problem}")
        evidence.begin(journals)
        raise
    evidence.begin(journals)
    ended = agent.wait()
    for left in sweep(record.shim_pids, _spared(home)):
        record.note("killed", left.pid, f"`{left.name}`: left behind by the agent")
    evidence.await_last_words(record.shim_pids)
    # Nobody else records the end of a shim that was killed together with its warden.
    close_what_died(home.places)
    watch.conclude(record, stage)
    status = record.close(*_status(ended))
    if status is RunStatus.TERMINATED and not stage.demands.judge:
        by = record.why_stopped() or "policy terminated this run"
        stage.tell(f"{by}; see `sub query runs`")
    return ended.exit_code


def _status(ended: Ended) -> tuple[RunStatus, str | None]:
    """Returns the run's status by the agent's exit, and the reason (shared-runs)."""
    if ended.exit_code == 0:
        return RunStatus.SUCCEEDED, None
    for number in _INTERRUPTS:
        by_code = number in ended.signals_seen and ended.exit_code == 128 + number
        # A program that handles the signal itself exits with the code that a shell would report.
        if ended.signal == number or by_code:
            return RunStatus.CANCELLED, f"the agent was stopped by {number.name}"
    if ended.signal is not None:
        return RunStatus.FAILED, f"the agent was killed by {signal.Signals(ended.signal).name}"
    return RunStatus.FAILED, f"the agent ended with exit code {ended.exit_code}"


def _spared(home: Home) -> frozenset[int]:
    """Returns ledgerd's process, which the agent may have started, unless the home is removed."""
    note = None if home.is_temporary else read_note(home.places)
    return frozenset() if note is None else frozenset([note.pid])
