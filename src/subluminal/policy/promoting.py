"""Turns a refused call into the narrowest rule that lets the call pass (spec 001, section 10).

The rule is an `allow` in front of the rule that refused. It names one server, one tool, and those
arguments that a person chooses. All other calls stay refused. Pure.
"""

from decimal import Decimal
from typing import Any, NamedTuple

from msgspec import to_builtins
from msgspec.structs import replace

from subluminal.canonical import args_hash
from subluminal.contracts.agents import AgentFacts
from subluminal.contracts.bundle import (
    AllowRule,
    AnyRule,
    ArgsMatch,
    Bundle,
    DenyRule,
    KernelRule,
    Match,
    PinRule,
    TagRule,
    TaintRule,
)
from subluminal.contracts.call import MCP, Given
from subluminal.contracts.decision import Decision
from subluminal.contracts.identity import Identity
from subluminal.contracts.targets import Targets
from subluminal.contracts.vocabulary import Action, DataClass, Layer, RuleKind, Taint
from subluminal.errors import SubluminalError
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.covering import among, disjoint, possible_values
from subluminal.policy.covering_contents import in_range
from subluminal.policy.evaluation import Call, Engine
from subluminal.policy.predicates import same_value
from subluminal.policy.raising import LimitRule, limit_kind
from subluminal.policy.replay.hidden_agents import unknown_matchers
from subluminal.policy.replay.hidden_args import PartialArgs
from subluminal.policy.replay.recorded import RecordedAgent
from subluminal.policy.snapshot import AGENT_MATCHERS, Snapshot
from subluminal.policy.taint import lowering_to
from subluminal.policy.visit import JudgeOf

REASON_CODE = "PROMOTED"
_INSTEAD = {
    RuleKind.TAG: "name a rule that refuses calls: a tag never does",
    RuleKind.TAINT: "name a rule that refuses calls: a taint rule never does",
    RuleKind.PIN: "review the new definition of the tool, and pin it",
}
_WILD = str.maketrans({char: f"[{char}]" for char in "*?["})


class RefusedCall(NamedTuple):
    """The call that a hint is about. `args` is None if the record does not have them unchanged."""

    server_name: str
    tool_name: str
    args: dict[str, Any] | None
    identity: Identity
    wall_ms: int
    targets: Targets | None = None
    """what the call touched, as recorded; None if the record does not say"""
    taint: Taint = Taint.SYSTEM
    """level of the run before the call"""
    data: frozenset[DataClass] | None = None
    """classes of data in the arguments; None if nobody looked"""
    agent: RecordedAgent | None = None
    """facts about the agent; None if the record does not have them"""
    provider: str = MCP
    """what provides the tool"""
    given: Given | None = None
    """what the program around the call said about it"""
    hidden: frozenset[str] = frozenset()
    """matchers about parts of that which the record masks"""


def refusing_rule(
    bundle: Bundle, rule_id: str | None, reason_code: str | None
) -> tuple[int, AllowRule | DenyRule | LimitRule]:
    """Returns the rule that refused with this reason, and its index. Raises SubluminalError."""
    found = [pair for pair in enumerate(bundle.rules) if pair[1].rule_id == rule_id]
    if not found:
        where = f"policy `{bundle.policy_id}`"
        raise SubluminalError(
            f"the hint does not come from a rule of {where}"
            if rule_id is None
            else f"{where} has no rule `{rule_id}`",
            hint="name the file of the policy that refused the call",
        )
    index, rule = found[0]
    if not rule.enabled:
        raise SubluminalError(
            f"rule `{rule_id}` is disabled: it no longer refuses calls",
            hint="let the agent repeat the call",
        )
    if isinstance(rule, KernelRule):
        raise left_to_pack(rule.rule_id, rule.effect.kernel.pack)
    if isinstance(rule, TagRule | PinRule | TaintRule):
        kind = RuleKind(str(rule.__struct_config__.tag))
        raise SubluminalError(
            f"rule `{rule_id}` is of kind `{kind.value}`: it refuses no calls",
            hint=_INSTEAD[kind],
        )
    limit = limit_kind(reason_code)
    if (limit is not None or isinstance(rule, LimitRule)) and limit != rule.__struct_config__.tag:
        raise SubluminalError(
            f"rule `{rule_id}` is of another kind than when it refused this call",
            hint="let the agent try again, then promote the new hint",
        )
    return index, rule


def left_to_pack(rule_id: str, pack: str) -> SubluminalError:
    """Returns why a kernel rule cannot be promoted, and what a person can do instead."""
    return SubluminalError(
        f"rule `{rule_id}` leaves the decision to the pack `{pack}`: there is nothing to promote",
        hint="change `state` of the rule, or write an allow above it; what a pack leaves to a"
        " person is answered with `sub approve`",
    )


def watched_keys(rule: AllowRule | DenyRule) -> list[str]:
    """Returns the arguments that a rule tests or wants changed, which set this call apart."""
    args = rule.match.args
    named = [] if args is None else [*args.has_keys, *args.key_equals, *args.key_in]
    named += [] if args is None else [*args.key_not_equals, *args.numeric_range]
    return list(dict.fromkeys([*named, *rule.effect.suggest]))


def literal_glob(name: str) -> str:
    """Returns a glob that matches this name only."""
    return name.translate(_WILD)


def exception_rule(
    call: RefusedCall,
    keys: list[str],
    *,
    rule_id: str,
    description: str,
    message: str,
    refused_by: AllowRule | DenyRule | None = None,
) -> dict[str, Any]:
    """Returns an `allow` rule for this tool with the same values of the named arguments.

    It is for the agents that `refused_by` is about, and for no others.
    """
    match: dict[str, Any] = {
        "server_name": {"glob": [literal_glob(call.server_name)]},
        "tool_name": {"glob": [literal_glob(call.tool_name)]},
    }
    if refused_by is not None:
        match |= _same_agents(refused_by.match)
    if keys:
        match["args"] = _same_args(call.args or {}, keys)
    return {
        "rule_id": rule_id,
        "description": description,
        "kind": RuleKind.ALLOW.value,
        "enabled": True,
        "severity": "info",
        "match": match,
        "effect": {"action": "ALLOW", "reason_code": REASON_CODE, "message": message},
    }


def _same_agents(match: Match) -> dict[str, Any]:
    given = {name: getattr(match, name) for name in (*AGENT_MATCHERS, "tool_provider")}
    return {name: to_builtins(value) for name, value in given.items() if value not in (None, [])}


def _same_args(args: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    equal = {key: _as_read(args[key]) for key in keys if _is_scalar(args[key])}
    others = {key: [_as_read(args[key])] for key in keys if not _is_scalar(args[key])}
    made = {"key_equals": equal, "key_in": others}
    return {name: values for name, values in made.items() if values}


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float | Decimal)


def _as_read(value: Any) -> Any:
    """Returns a value as rules compare it: with numbers that a double can hold."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {key: _as_read(item) for key, item in value.items()}
    return [_as_read(item) for item in value] if isinstance(value, list) else value


def free_rule_id(bundle: Bundle, rule_id: str) -> str:
    """Returns an unused rule_id for the exception to a rule."""
    taken = {rule.rule_id for rule in bundle.rules}
    name, number = f"{rule_id}-exception", 1
    while name in taken:
        number += 1
        name = f"{rule_id}-exception-{number}"
    return name


def decide(snapshot: Snapshot, call: RefusedCall, judge_of: JudgeOf | None = None) -> Decision:
    """Decides the call by one policy alone, as the first call of a run of that level."""
    identity, facts = call.identity, AgentFacts()
    if call.agent is not None:
        identity = replace(identity, environment=call.agent.environment)
        facts = call.agent.facts
    engine = Engine([(Layer.REPOSITORY, snapshot)], identity, agent=facts)
    args = call.args or {}
    asked = Call(
        *(call.server_name, call.tool_name, args, args_hash(args)),
        targets=call.targets,
        provider=call.provider,
        given=call.given,
        data=call.data,
    )
    if judge_of is not None and engine.needs_judge(asked):
        asked = replace(asked, judge=judge_of(asked, "", call.wall_ms))
    counters = MemoryCounters()
    counters.write(lowering_to(call.taint))
    evaluation = engine.evaluate(asked, counters, wall_ms=call.wall_ms, mono_ms=0)
    return evaluation.decision


def is_on_record(call: RefusedCall, snapshot: Snapshot) -> bool:
    """Whether the record has all that a policy asks about a call, so that `decide` is certain."""
    hidden = set(call.hidden)
    if call.agent is None:
        hidden |= set(unknown_matchers(call.identity))
    if call.given is not None and isinstance(call.given.context, PartialArgs):
        hidden.add("context")
    return call.args is not None and not snapshot.asks(sorted(hidden))


def also_passed(rules: list[AnyRule], index: int, match: Match) -> list[str]:
    """Returns the later rules that calls may also pass because of an allow before rule `index`.

    The list may be too long: a rule in it need not refuse any such call.
    """
    return [
        rule.rule_id
        for rule in rules[index + 1 :]
        if rule.enabled
        and _may_refuse(rule)
        and not disjoint(rule.match, match)
        and not _exclude(rule.match.args or ArgsMatch(), match.args or ArgsMatch())
    ]


def _may_refuse(rule: AnyRule) -> bool:
    """Whether a rule about access refuses calls."""
    if isinstance(rule, AllowRule | DenyRule):
        return rule.effect.action != Action.ALLOW or rule.effect.require is not None
    return isinstance(rule, KernelRule)


def _exclude(asked: ArgsMatch, given: ArgsMatch) -> bool:
    """Whether the values that `given` fixes can never match `asked`."""
    for key in [*given.key_equals, *given.key_in]:
        (value,) = possible_values(given, key) or [None]
        listed = possible_values(asked, key)
        if listed is not None and not among(value, listed):
            return True
        if key in asked.numeric_range and not in_range(value, asked.numeric_range[key]):
            return True
        if key in asked.key_not_equals and same_value(value, asked.key_not_equals[key]):
            return True
    return False
