"""`sub run`: runs an agent as one run, from its first process to its last."""

import argparse
import os
import signal
import sys

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.running.agent import Agent, CannotStart, Ended
from subluminal.cli.running.clients import adjusted
from subluminal.cli.running.record import RunRecord
from subluminal.cli.running.stamping import Wishes, stamp
from subluminal.cli.running.sweeping import sweep
from subluminal.config import env
from subluminal.config.places import Places, places
from subluminal.contracts.vocabulary import Client, Env, RunStatus
from subluminal.errors import UsageError
from subluminal.ledger.daemon.instance import read_note
from subluminal.supervise import become_subreaper

EXAMPLE = """sub run -- claude
sub run --agent-id repo-fixer --env ci --policy ci.yaml -- codex exec "fix the build\""""

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
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="the agent")


def run(args: Args, out: Output) -> int:
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command or not command[0]:
        raise UsageError("the agent's command is missing", hint="sub run -- COMMAND [ARG…]")
    wishes = Wishes(args.agent_id, args.env, args.client, args.principal, args.policy)
    cwd = os.getcwd()
    stamped = stamp(wishes, command, os.environ, cwd)
    where = places(os.environ)
    record = RunRecord.open(where, stamped, stamped.environ.get(env.SUB_POLICY.name), cwd)
    command, told = adjusted(command)
    if told:
        out.talk(f"sub: {told}")
    if args.print_run_id:
        out.line(stamped.run_id)
    # What the agent prints must come after it.
    sys.stdout.flush()
    return _run(command, stamped.environ, record, where, out)


def _run(
    command: list[str], environ: dict[str, str], record: RunRecord, where: Places, out: Output
) -> int:
    become_subreaper()
    try:
        agent = Agent(command, environ)
    except CannotStart as problem:
        record.close(RunStatus.FAILED, f"cannot start the agent: {problem}")
        out.error(f"cannot start `{command[0]}`: {problem}", "give a program that is on the PATH")
        return problem.exit_code
    ended = agent.wait()
    for left in sweep(record.shim_pids, _spared(where)):
        record.note("killed", left.pid, f"`{left.name}`: left behind by the agent")
    if record.close(*_verdict(ended)) is RunStatus.TERMINATED:
        out.talk("sub: this run was terminated by policy; `sub query runs` tells more")
    return ended.exit_code


def _verdict(ended: Ended) -> tuple[RunStatus, str | None]:
    """How the run ended, as far as the agent's exit tells (D4)."""
    if ended.exit_code == 0:
        return RunStatus.SUCCEEDED, None
    for number in _INTERRUPTS:
        # A program that handles the signal ends as a shell would report it.
        if ended.signal == number or (number in ended.told_to and ended.exit_code == 128 + number):
            return RunStatus.CANCELLED, f"the agent was stopped by {number.name}"
    if ended.signal is not None:
        return RunStatus.FAILED, f"the agent was killed by {signal.Signals(ended.signal).name}"
    return RunStatus.FAILED, f"the agent ended with exit code {ended.exit_code}"


def _spared(where: Places) -> frozenset[int]:
    """ledgerd, should the agent have been the first to need it."""
    note = read_note(where)
    return frozenset() if note is None else frozenset([note.pid])
