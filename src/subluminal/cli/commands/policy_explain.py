"""`sub policy explain`: one decision, rule by rule, with the counters before and after."""

import os
from typing import TYPE_CHECKING, Any

from subluminal.canonical import parse
from subluminal.cli.files import load_policy
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.cli.policy_terms import add_signature, terms_of
from subluminal.clock import now
from subluminal.config.loading import load_settings
from subluminal.config.places import places
from subluminal.contracts.identity import Identity
from subluminal.contracts.shape import misfits, struct_of
from subluminal.contracts.targets import Targets
from subluminal.contracts.vocabulary import Client, Env, Taint
from subluminal.core.policies.installed import installed_judge
from subluminal.errors import AmbiguousJSON, ExitCode, UsageError
from subluminal.policy.casefile import CaseIdentity, CaseWorkload, wall_ms_of
from subluminal.policy.evaluation import Call
from subluminal.policy.explaining import PackStep, PackSteps, as_text, explain, with_disabled

if TYPE_CHECKING:
    from subluminal.core.intents.judging import CallJudge

EXAMPLE = """sub policy explain --policy policy.yaml --server git --tool push --args '{"a":1}'
sub policy explain --policy policy.yaml --server git --tool push --env ci --repeat 3 --json"""

_MAX_REPEAT = 10_000


def add_arguments(parser: Parser) -> None:
    default = CaseIdentity()
    parser.add_argument("--policy", required=True, metavar="FILE", help="a bundle or a snapshot")
    parser.add_argument("--server", required=True, help="the server's name")
    parser.add_argument("--tool", required=True, help="the tool's name")
    parser.add_argument("--args", default="{}", metavar="JSON", help="the call's arguments")
    parser.add_argument(
        "--env",
        choices=[env.value for env in Env],
        default=default.env.value,
        help=f"default {default.env.value}",
    )
    parser.add_argument(
        "--agent-id", metavar="NAME", default=default.agent_id, help=f"default {default.agent_id}"
    )
    parser.add_argument(
        "--client",
        choices=[client.value for client in Client],
        default=default.client.value,
        help=f"default {default.client.value}",
    )
    parser.add_argument("--principal", metavar="WHO", help="who started the run")
    parser.add_argument("--workload", default="{}", metavar="JSON", help='{"branch": "main", …}')
    parser.add_argument(
        "--at", metavar="TIME", help="time of the call, such as 2026-01-31T09:00:00Z; default now"
    )
    parser.add_argument(
        "--repeat",
        type=int,
        default=1,
        metavar="N",
        help="explain the last of N equal calls; default 1",
    )
    parser.add_argument(
        "--cwd", metavar="DIR", help="directory in which the call acts; default the current one"
    )
    parser.add_argument(
        "--taint",
        choices=[level.value for level in Taint],
        default=Taint.SYSTEM.value,
        help="level of the run before the call; default SYSTEM",
    )
    add_signature(parser)
    parser.add_argument("--json", action="store_true", help="print {decision, steps, targets, …}")


def run(args: Args, out: Output) -> int:
    if not 1 <= args.repeat <= _MAX_REPEAT:
        raise UsageError(f"`--repeat` must be between 1 and {_MAX_REPEAT}")
    policy = load_policy(args.policy, terms_of(args))
    call = (args.server, args.tool, _object(args.args, "--args"))
    judges: list[CallJudge] = []

    def judge_of(call: Call, run_id: str, wall_ms: int) -> "CallJudge":
        judges.append(installed_judge(call, run_id, wall_ms))
        return judges[-1]

    found = explain(
        policy.snapshot,
        _identity(args),
        call,
        wall_ms=_wall_ms(args.at),
        repeat=args.repeat,
        targets=_targets(call, args.cwd),
        taint=Taint(args.taint),
        judge_of=judge_of,
    )
    found = found._replace(packs=_packs(judges))
    if policy.loaded is not None:
        steps = with_disabled(found.steps, policy.loaded.bundle.rules)
        found = found._replace(steps=steps)
    if args.json:
        out.json(found.plain())
    else:
        for line in as_text(found):
            out.line(shown(line))
    return ExitCode.OK


def _packs(judges: "list[CallJudge]") -> tuple[PackSteps, ...]:
    """Returns how the packs that a call asked came to their decisions."""
    return tuple(
        PackSteps(
            trace.rule_id,
            trace.said.kernel,
            [PackStep(each.phase, each.outcome, each.guard_name) for each in trace.steps],
        )
        for judge in judges
        for trace in judge.traces
        if trace.said.kernel is not None
    )


def _targets(call: tuple[str, str, dict[str, Any]], cwd: str | None) -> Targets:
    from subluminal.core.targets.reading import targets_of  # loads the shell parser
    from subluminal.core.targets.table import table_for

    server, tool, args = call
    table = table_for(load_settings(places(os.environ).settings))
    return targets_of(server, tool, args, cwd=os.path.abspath(cwd or os.getcwd()), table=table)


def _identity(args: Args) -> Identity:
    workload = _object(args.workload, "--workload")
    wrong = misfits(workload, CaseWorkload)
    if wrong:
        raise UsageError(f"`--workload`: {wrong[0].message}", hint=wrong[0].hint)
    return Identity(
        agent_id=args.agent_id,
        client=Client(args.client),
        env=Env(args.env),
        principal=args.principal,
        workload=struct_of(workload, CaseWorkload),
    )


def _wall_ms(text: str | None) -> int:
    if text is None:
        return now().wall_ms
    wall_ms = wall_ms_of(text)
    if wall_ms is None:
        raise UsageError(
            f"`--at`: `{text}` is not a time with a time zone",
            hint="write it as `2026-01-31T09:00:00Z`",
        )
    return wall_ms


def _object(text: str, option: str) -> dict[str, Any]:
    try:
        value = parse(text.encode("utf-8", "surrogateescape")).value
    except AmbiguousJSON as error:
        raise UsageError(
            f"`{option}`: {error}", hint="give one JSON object in single quotes"
        ) from None
    if not isinstance(value, dict):
        raise UsageError(
            f"`{option}` must be a JSON object", hint='for example \'{"branch": "main"}\''
        )
    return value
