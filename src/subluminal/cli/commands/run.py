"""`sub run`: runs an agent as one run, from its first process to its last."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from subluminal.cli.frame import Args, Parser
from subluminal.cli.main import open_host
from subluminal.cli.output import Output, shown
from subluminal.contracts.vocabulary import Client, Severity, Taint
from subluminal.counts import counted
from subluminal.errors import UsageError
from subluminal.export.violations import Demands, Strict, Violation
from subluminal.operator.running.run import Order, run_agent
from subluminal.operator.running.stamping import Wishes

if TYPE_CHECKING:
    from subluminal.export.summary import Summary

EXAMPLE = """sub run -- claude
sub run --agent-id repo-fixer --env ci --policy ci.yaml -- codex exec "fix the build"
sub run --strict --policy ci.yaml --artifact out -- claude -p "fix the build"
sub run --events - -- claude -p "fix the build" | jq .type"""

_STDOUT = "-"
_HINT = "`sub import` wraps servers; `--allow-silent SERVER` accepts one that is not seen"
_SHOWN = 10
"""Violations that are printed one by one."""


def add_arguments(parser: Parser) -> None:
    parser.usage = "sub run [OPTION…] -- COMMAND [ARG…]"
    clients = [member.value for member in Client if member is not Client.UNKNOWN]
    parser.add_argument(
        "--agent-id",
        metavar="NAME",
        help="the agent's name for selectors; default SUB_AGENT_ID, else the program's name",
    )
    parser.add_argument(
        "--env",
        metavar="NAME",
        help="dev, ci, prod or any other name; default SUB_ENV, else ci or dev as detected",
    )
    parser.add_argument(
        "--client", choices=clients, help="default SUB_CLIENT, else by the program's name"
    )
    parser.add_argument(
        "--principal", metavar="WHO", help="who started the run; default: the current user"
    )
    parser.add_argument(
        "--policy", metavar="FILE", help="use this instead of the repository's policy"
    )
    parser.add_argument(
        "--run-id",
        metavar="ID",
        help="the run's id; default SUB_RUN_ID unless that run is still running, else a new one",
    )
    parser.add_argument(
        "--meta",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="record this with the run; may be repeated; adds to SUB_RUN_META",
    )
    parser.add_argument(
        "--taint",
        choices=[level.value for level in Taint],
        help="the level that the run starts with at most; default SUB_TAINT, else SYSTEM",
    )
    parser.add_argument(
        "--print-run-id", action="store_true", help="print the run's id before the agent starts"
    )
    parser.add_argument(
        "--strict",
        nargs="?",
        const=Strict.REFUSED,
        type=_strictness,
        metavar="throttle",
        help="exit 3 if a call was refused (=throttle: or throttled), no policy applied, or a "
        "server of the client was not seen",
    )
    parser.add_argument(
        "--allow-silent",
        metavar="SERVER",
        action="append",
        default=[],
        help="this server need not be seen; may be repeated",
    )
    parser.add_argument(
        "--fail-on",
        choices=[severity.value for severity in Severity],
        help="exit 3 on any decision at least this severe, even one that was only observed",
    )
    parser.add_argument(
        "--events",
        metavar="FILE",
        help="stream the run's events as JSONL; `-` is stdout, and the agent's stdout then goes "
        "to stderr",
    )
    parser.add_argument(
        "--artifact",
        metavar="DIR",
        help="write events, summary, JUnit, SARIF, policies and proof to this directory",
    )
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="COMMAND", help="the agent's command"
    )


def _strictness(word: str) -> Strict:
    if word not in list(Strict):
        # The word after --strict is most often the agent's program.
        raise argparse.ArgumentTypeError(f"`{word}` is not `throttle`; put `--` before the agent")
    return Strict(word)


def run(args: Args, out: Output) -> int:
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command or not command[0]:
        raise UsageError("the agent's command is missing", hint="write `sub run -- COMMAND [ARG…]`")
    fail_on = None if args.fail_on is None else Severity(args.fail_on)
    order = Order(
        command,
        Wishes(
            args.agent_id,
            args.env,
            args.client,
            args.principal,
            args.policy,
            args.run_id,
            tuple(args.meta),
            None if args.taint is None else Taint(args.taint),
        ),
        Demands(args.strict, fail_on, tuple(args.allow_silent)),
        args.events,
        args.artifact,
        to_terminal=out.out_is_terminal,
    )

    def tell(note: str) -> None:
        out.talk(f"sub: {shown(note)}")

    def announce(run_id: str) -> None:
        if args.print_run_id:
            (out.talk if args.events == _STDOUT else out.line)(run_id)
        # The agent's own output must come after it.
        sys.stdout.flush()

    left = run_agent(
        order,
        os.environ,
        open_host,
        tell=tell,
        warn=out.warning,
        announce=announce,
        shown=shown,
    )
    for problem in left.problems:
        out.error(str(problem), problem.hint)
    for note in left.notes:
        tell(note)
    if left.summary is not None:
        _print_violations(left.summary, out)
    return left.exit_code


def _print_violations(summary: "Summary", out: Output) -> None:
    verdict = summary.verdict()
    total = len(summary.violations)
    if verdict["holds"]:
        rest = f"; {counted(total, 'violation')} tolerated" if total else ""
        if summary.silent and summary.demands.strict:
            names = ", ".join(f"`{each.title}`" for each in summary.silent)
            rest += shown(f"; not seen, as allowed: {names}")
        out.talk(f"sub: the run kept to its policy{rest}")
        return
    unseen = [each for each in summary.silent if each.fails]
    out.error(
        f"this run violated policy: {'; '.join(verdict['because'])}", _HINT if unseen else None
    )
    for silent in unseen[:_SHOWN]:
        out.talk(shown(f"  {silent.title}: {silent.detail}"))
    failing = [each for each in summary.violations if each.fails]
    for each in failing[:_SHOWN]:
        out.talk(shown(f"  {_told(each)}"))
    if len(failing) > _SHOWN:
        out.talk(f"  and {len(failing) - _SHOWN} more")


def _told(violation: Violation) -> str:
    tool = f"{violation.server_name}/{violation.tool_name}"
    by = violation.rule_id or violation.reason_code
    what = violation.action if violation.kind in ("refused", "throttled") else violation.kind
    severity, summary = violation.severity, violation.summary
    return f"call {violation.seq}: {tool}: {what} by `{by}` ({severity}): {summary}"
