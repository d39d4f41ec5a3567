"""`sub policy explain`: one decision, rule by rule, with the counters before and after."""

import os
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from subluminal.canonical import parse
from subluminal.cli.files import load_policy
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.cli.policy_terms import add_signature, terms_of
from subluminal.clock import now
from subluminal.config.loading import load_settings
from subluminal.config.places import places
from subluminal.contracts.call import MCP
from subluminal.contracts.shape import misfits, struct_of
from subluminal.contracts.targets import Targets
from subluminal.contracts.vocabulary import Client, Taint, TrustLevel
from subluminal.core.contents.source import data_in
from subluminal.core.policies.installed import installed_judge
from subluminal.errors import AmbiguousJSON, ExitCode, UsageError
from subluminal.policy.case_agents import CaseClaims, CaseGiven, CaseIdentity, CaseWorkload
from subluminal.policy.casefile import wall_ms_of
from subluminal.policy.evaluation import Call
from subluminal.policy.explaining import PackStep, PackSteps, as_text, explain, with_disabled

if TYPE_CHECKING:
    from subluminal.core.intents.judging import CallJudge

EXAMPLE = """sub policy explain --policy policy.yaml --server git --tool push --args '{"a":1}'
sub policy explain --policy policy.yaml --server git --tool push --env ci --repeat 3 --json
sub policy explain --policy policy.yaml --server git --tool push --registered --trust-level basic"""

_MAX_REPEAT = 10_000
_S = TypeVar("_S", bound=Struct)


def add_arguments(parser: Parser) -> None:
    default = CaseIdentity()
    default_env = default.identity.env.value
    parser.add_argument("--policy", required=True, metavar="FILE", help="a bundle or a snapshot")
    parser.add_argument("--server", required=True, help="the server's name")
    parser.add_argument("--tool", required=True, help="the tool's name")
    parser.add_argument("--args", default="{}", metavar="JSON", help="the call's arguments")
    parser.add_argument(
        "--env",
        metavar="NAME",
        default=default_env,
        help=f"environment, in any words; default {default_env}",
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
    _add_agent(parser)
    add_signature(parser)
    parser.add_argument("--json", action="store_true", help="print {decision, steps, targets, …}")


def _add_agent(parser: Parser) -> None:
    levels = [level.value for level in TrustLevel]
    parser.add_argument("--registered", action="store_true", help="the agent is registered")
    parser.add_argument("--agent-type", metavar="TYPE", help="type of the agent, as registered")
    parser.add_argument(
        "--trust-level",
        choices=levels,
        default=TrustLevel.UNTRUSTED.value,
        help="trust in the agent; default untrusted",
    )
    parser.add_argument(
        "--trust-after-denials",
        choices=levels,
        help="the same after more than three refusals in a row; default the same",
    )
    parser.add_argument(
        "--role", action="append", default=[], metavar="ROLE", help="a role of the agent; repeat"
    )
    parser.add_argument(
        "--delegation-depth",
        type=int,
        default=0,
        metavar="N",
        help="number of agents that handed the work on; default 0",
    )
    parser.add_argument(
        "--provider", metavar="NAME", default=MCP, help=f"provider of the tool; default {MCP}"
    )
    parser.add_argument(
        "--label", action="append", default=[], metavar="LABEL", help="a label of the data; repeat"
    )
    parser.add_argument(
        "--context", default="{}", metavar="JSON", help="what the program gives with the call"
    )
    parser.add_argument("--user-input", metavar="TEXT", help="text of the user behind the call")
    parser.add_argument(
        "--claims", metavar="JSON", help='what the caller says of itself: {"environment": …}'
    )


def run(args: Args, out: Output) -> int:
    if not 1 <= args.repeat <= _MAX_REPEAT:
        raise UsageError(f"`--repeat` must be between 1 and {_MAX_REPEAT}")
    if args.delegation_depth < 0:
        raise UsageError("`--delegation-depth` must be at least 0")
    policy = load_policy(args.policy, terms_of(args))
    call = (args.server, args.tool, _object(args.args, "--args"))
    who = _identity(args)
    said = CaseGiven(
        provider=args.provider,
        labels=args.label,
        context=_object(args.context, "--context"),
        user_input=args.user_input,
        claims=None if args.claims is None else _struct(args.claims, "--claims", CaseClaims),
    )
    judges: list[CallJudge] = []

    def judge_of(call: Call, run_id: str, wall_ms: int) -> "CallJudge":
        judges.append(installed_judge(call, run_id, wall_ms))
        return judges[-1]

    found = explain(
        policy.snapshot,
        who.identity,
        call,
        wall_ms=_wall_ms(args.at),
        repeat=args.repeat,
        targets=_targets(call, args.cwd),
        taint=Taint(args.taint),
        judge_of=judge_of,
        agent=who.facts,
        provider=said.provider,
        given=said.given,
        data=data_in(call[2]),
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


def _identity(args: Args) -> CaseIdentity:
    denied = args.trust_after_denials
    return CaseIdentity(
        agent_id=args.agent_id,
        client=Client(args.client),
        environment=args.env,
        principal=args.principal,
        workload=_struct(args.workload, "--workload", CaseWorkload),
        registered=args.registered,
        agent_type=args.agent_type,
        trust_level=TrustLevel(args.trust_level),
        trust_after_denials=None if denied is None else TrustLevel(denied),
        roles=args.role,
        delegation_depth=args.delegation_depth,
    )


def _struct(text: str, option: str, kind: type[_S]) -> _S:
    value = _object(text, option)
    wrong = misfits(value, kind)
    if wrong:
        raise UsageError(f"`{option}`: {wrong[0].message}", hint=wrong[0].hint)
    found: _S = struct_of(value, kind)
    return found


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
