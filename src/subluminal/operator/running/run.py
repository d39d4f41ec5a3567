"""Runs an agent as one run, from its first process to its last, and leaves the evidence."""

import os
import signal
from collections.abc import Callable, Mapping
from typing import NamedTuple

from subluminal.config import env
from subluminal.contracts.vocabulary import RunStatus
from subluminal.core.host import Host
from subluminal.core.runs.names import journal_dir
from subluminal.errors import SubluminalError
from subluminal.export.violations import NO_DEMANDS, Demands
from subluminal.ledger.client.roll_call import close_what_died
from subluminal.ledger.daemon.instance import read_note
from subluminal.operator.running.agent import Agent, CannotStart, Ended, adjusted, sweep
from subluminal.operator.running.evidence import Evidence, Left
from subluminal.operator.running.home import Home, find_home
from subluminal.operator.running.record import RunRecord
from subluminal.operator.running.stamping import Stamp, Wishes, stamp
from subluminal.supervise import become_subreaper

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Tell = Callable[[str], None]


class Order(NamedTuple):
    """What to run, and what the run must leave."""

    command: list[str]
    wishes: Wishes
    demands: Demands = NO_DEMANDS
    events: str | None = None
    """file to stream events to; `-` is stdout"""
    artifact: str | None = None
    """directory for the artifact"""


class _Stage(NamedTuple):
    """What one run works with."""

    demands: Demands
    evidence: Evidence
    home: Home
    open_host: Callable[..., Host]
    tell: Tell


def run_agent(
    order: Order,
    environ: Mapping[str, str],
    open_host: Callable[..., Host],
    *,
    tell: Tell,
    announce: Tell,
    shown: Callable[[str], str],
) -> Left:
    """Runs the agent to its end.

    `open_host` is wiring's. `tell` gets notes for the person. `announce` gets the run's id just
    before the agent starts. `shown` makes text from tools safe for a terminal. Raises
    SubluminalError if the run cannot be recorded as ordered; then the agent was not started.
    """
    evidence = Evidence(order.events, order.artifact, order.demands, shown)
    try:
        home = find_home(environ, evidence.artifact, is_streamed=evidence.is_streamed)
        try:
            stage = _Stage(order.demands, evidence, home, open_host, tell)
            return _run(order, {**environ, **home.environ}, stage, announce)
        finally:
            home.remove()
    finally:
        evidence.close()


def _run(order: Order, environ: Mapping[str, str], stage: _Stage, announce: Tell) -> Left:
    if stage.home.is_temporary:
        stage.tell("cannot write to the home, so only the events or artifact of this run will stay")
    cwd = os.getcwd()
    stamped = stamp(order.wishes, order.command, environ, cwd)
    policy = stamped.environ.get(env.SUB_POLICY.name)
    record = RunRecord.open(stage.open_host, stage.home.places, stamped, policy, cwd, order.demands)
    command, note = adjusted(order.command)
    if note:
        stage.tell(note)
    announce(stamped.run_id)
    try:
        code = _attend(command, stamped, record, stage)
    except CannotStart as problem:
        left = stage.evidence.end(problem.exit_code)
        text = f"cannot start `{command[0]}`: {problem}"
        left.problems.insert(0, SubluminalError(text, hint="give a program that is on the PATH"))
        return left
    return stage.evidence.end(code)


def _attend(command: list[str], stamped: Stamp, record: RunRecord, stage: _Stage) -> int:
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
    status = record.close(*_status(ended))
    if status is RunStatus.TERMINATED and stage.demands == NO_DEMANDS:
        stage.tell("policy terminated this run; see `sub query runs`")
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
