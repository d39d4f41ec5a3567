"""`sub run`: runs an agent as one run, from its first process to its last."""

import argparse
import os
import signal
import sys
from typing import NamedTuple

from subluminal.cli.frame import Args, Parser
from subluminal.cli.main import open_host
from subluminal.cli.output import Output
from subluminal.config import env
from subluminal.contracts.vocabulary import Client, Env, RunStatus, Severity
from subluminal.core.runs.names import journal_dir
from subluminal.errors import UsageError
from subluminal.export.violations import NO_DEMANDS, Demands, Strict
from subluminal.ledger.client.roll_call import close_what_died
from subluminal.ledger.daemon.instance import read_note
from subluminal.operator.running.agent import Agent, CannotStart, Ended
from subluminal.operator.running.clients import adjusted
from subluminal.operator.running.evidence import Evidence
from subluminal.operator.running.home import Home, find_home
from subluminal.operator.running.record import RunRecord
from subluminal.operator.running.stamping import Stamp, Wishes, stamp
from subluminal.operator.running.sweeping import sweep
from subluminal.supervise import become_subreaper

EXAMPLE = """sub run -- claude
sub run --agent-id repo-fixer --env ci --policy ci.yaml -- codex exec "fix the build"
sub run --strict --policy ci.yaml --artifact out -- claude -p "fix the build"
sub run --events - -- claude -p "fix the build" | jq .type"""

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def add_arguments(parser: Parser) -> None:
    parser.usage = "sub run [OPTION…] -- COMMAND [ARG…]"
    envs = [member.value for member in Env if member is not Env.UNKNOWN]
    clients = [member.value for member in Client if member is not Client.UNKNOWN]
    parser.add_argument(
        "--agent-id", metavar="NAME", help="for selectors; else SUB_AGENT_ID, else the program"
    )
    parser.add_argument("--env", choices=envs, help="else SUB_ENV, else ci or dev")
    parser.add_argument("--client", choices=clients, help="else SUB_CLIENT, else by the program")
    parser.add_argument("--principal", metavar="WHO", help="who started it; else the user")
    parser.add_argument("--policy", metavar="FILE", help="in place of the repository's policy")
    parser.add_argument(
        "--print-run-id", action="store_true", help="print the run's id before the agent starts"
    )
    parser.add_argument(
        "--strict",
        nargs="?",
        const=Strict.REFUSED,
        type=_strictness,
        metavar="throttle",
        help="exit 3 if a call was refused (=throttle: or throttled), or no policy applied",
    )
    parser.add_argument(
        "--fail-on",
        choices=[severity.value for severity in Severity],
        help="exit 3 on any decision at least this serious, also if it was only observed",
    )
    parser.add_argument(
        "--events",
        metavar="FILE",
        help="stream the run's events as JSONL; `-`: to stdout, the agent's own goes to stderr",
    )
    parser.add_argument(
        "--artifact", metavar="DIR", help="leave events, summary, JUnit, SARIF, policies, proof"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="the agent")


def _strictness(word: str) -> Strict:
    if word not in list(Strict):
        # What follows --strict is most often the agent.
        raise argparse.ArgumentTypeError(f"`{word}` is not `throttle`; the agent goes after `--`")
    return Strict(word)


def run(args: Args, out: Output) -> int:
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command or not command[0]:
        raise UsageError("the agent's command is missing", hint="sub run -- COMMAND [ARG…]")
    demands = Demands(args.strict, None if args.fail_on is None else Severity(args.fail_on))
    evidence = Evidence(args.events, args.artifact, demands)
    try:
        home = find_home(os.environ, evidence.artifact, is_streamed=evidence.is_streamed)
        try:
            return _run(command, args, _Held(demands, evidence, home), out)
        finally:
            home.remove()
    finally:
        evidence.close()


class _Held(NamedTuple):
    """What a run is held to, what it leaves, and where it is recorded."""

    demands: Demands
    evidence: Evidence
    home: Home


def _run(command: list[str], args: Args, held: _Held, out: Output) -> int:
    if held.home.is_passing:
        out.talk("sub: the home cannot be written, so only this run's own evidence will stay")
    wishes = Wishes(args.agent_id, args.env, args.client, args.principal, args.policy)
    cwd = os.getcwd()
    stamped = stamp(wishes, command, {**os.environ, **held.home.environ}, cwd)
    policy = stamped.environ.get(env.SUB_POLICY.name)
    record = RunRecord.open(open_host, held.home.places, stamped, policy, cwd, held.demands)
    command, told = adjusted(command)
    if told:
        out.talk(f"sub: {told}")
    if args.print_run_id:
        (out.talk if held.evidence.takes_stdout else out.line)(stamped.run_id)
    # What the agent prints must come after it.
    sys.stdout.flush()
    code = _attended(command, stamped, record, held, out)
    return held.evidence.end(code, out)


def _attended(
    command: list[str], stamped: Stamp, record: RunRecord, held: _Held, out: Output
) -> int:
    """The agent's whole life; returns its exit code."""
    become_subreaper()
    journals = journal_dir(held.home.places, stamped.run_id)
    try:
        agent = Agent(command, stamped.environ, talks_to_stderr=held.evidence.takes_stdout)
    except CannotStart as problem:
        record.close(RunStatus.FAILED, f"cannot start the agent: {problem}")
        held.evidence.begin(journals)
        out.error(f"cannot start `{command[0]}`: {problem}", "give a program that is on the PATH")
        return problem.exit_code
    held.evidence.begin(journals)
    ended = agent.wait()
    for left in sweep(record.shim_pids, _spared(held.home)):
        record.note("killed", left.pid, f"`{left.name}`: left behind by the agent")
    held.evidence.await_last_words(record.shim_pids)
    # A shim that was killed with its warden has nobody else to end its part.
    close_what_died(held.home.places)
    status = record.close(*_verdict(ended))
    if status is RunStatus.TERMINATED and held.demands == NO_DEMANDS:
        out.talk("sub: this run was terminated by policy; `sub query runs` tells more")
    return ended.exit_code


def _verdict(ended: Ended) -> tuple[RunStatus, str | None]:
    """How the run ended, as far as the agent's exit tells (shared-runs)."""
    if ended.exit_code == 0:
        return RunStatus.SUCCEEDED, None
    for number in _INTERRUPTS:
        # A program that handles the signal ends as a shell would report it.
        if ended.signal == number or (number in ended.told_to and ended.exit_code == 128 + number):
            return RunStatus.CANCELLED, f"the agent was stopped by {number.name}"
    if ended.signal is not None:
        return RunStatus.FAILED, f"the agent was killed by {signal.Signals(ended.signal).name}"
    return RunStatus.FAILED, f"the agent ended with exit code {ended.exit_code}"


def _spared(home: Home) -> frozenset[int]:
    """ledgerd, should the agent have been the first to need it, in a home that stays."""
    note = None if home.is_passing else read_note(home.places)
    return frozenset() if note is None else frozenset([note.pid])
