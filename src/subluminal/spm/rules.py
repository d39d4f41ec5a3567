"""Plugins that are rules: each is a policy of its own, and the strictest of all policies holds.

A rule's id begins with Agent-SPM's code for its refusals, so that `reasons` have these codes. What
a rule cannot say, such as which tools a program knows, a plugin says in `before_check`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from subluminal.contracts.bundle import Bundle
from subluminal.policy.checking import semantic_misfits
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.snapshot import Snapshot
from subluminal.spm.trust import ToolRegistry
from subluminal.spm.types import (
    AgentTrustLevel,
    BeforeCheckContext,
    Decision,
    PluginResult,
    Reason,
)

_WINDOW_MS = 60_000
CODE_END = ":"
"""Ends the code at the beginning of a rule's id."""
_ALLOWED = {"action": "ALLOW", "reason_code": "ALLOWED", "message": "this call is allowed"}


class RulePlugin:
    """A plugin whose decisions are those of rules."""

    def __init__(
        self, name: str, rules: Sequence[dict[str, Any]], runners: Iterable[str] = ()
    ) -> None:
        self.name = name
        self.snapshot = _compiled(name, rules)
        self.runners = tuple(runners)
        """globs of tools whose argument `command` is a command line"""


class IdentityEnforcer(RulePlugin):
    """Refuses agents that are not known or not trusted enough, and tools that are not known."""

    def __init__(
        self,
        rules: Sequence[dict[str, Any]],
        tool_registry: ToolRegistry | None,
        *,
        require_tool_registration: bool,
    ) -> None:
        super().__init__("identity-enforcer", rules)
        self._tools = tool_registry
        self._require_tools = require_tool_registration

    def before_check(self, context: BeforeCheckContext) -> PluginResult | None:
        """Refuses tools that are revoked, and those that must be registered and are not."""
        tool, tools = context.request.action.tool_name, self._tools
        if tools is None:
            return None
        if tools.is_revoked(tool):
            return denied("TOOL_REVOKED", f"the tool `{tool}` is revoked")
        if self._require_tools and tools.get(tool) is None:
            return denied("TOOL_UNREGISTERED", f"the tool `{tool}` is not registered")
        return None


def denied(code: str, message: str) -> PluginResult:
    """Returns the result of a hook that refuses a call."""
    return PluginResult(Decision(outcome="DENY", reasons=(Reason(code, message),)))


def rate_limiter(
    *, max_per_minute: int | None = None, max_per_minute_per_tool: int | None = None
) -> RulePlugin:
    """Limits the calls of each agent in any minute, and those of each agent and tool.

    Refused calls do not count. Codes: RATE_LIMIT_AGENT, RATE_LIMIT_TOOL.
    """
    limits = (
        ("RATE_LIMIT_AGENT", "agent", max_per_minute),
        ("RATE_LIMIT_TOOL", "agent_tool", max_per_minute_per_tool),
    )
    rules = [_rate(code, scope, most) for code, scope, most in limits if most is not None]
    if not rules:
        raise TypeError("give max_per_minute, max_per_minute_per_tool or both")
    return RulePlugin("rate-limiter", rules)


def identity_enforcer(
    *,
    require_registration: bool = True,
    require_tool_registration: bool = False,
    tool_registry: ToolRegistry | None = None,
    minimum_trust_level: AgentTrustLevel | None = None,
    max_delegation_depth: int | None = None,
) -> IdentityEnforcer:
    """Refuses calls by who acts: as the registry of this home says, not as the caller does.

    Codes: AGENT_UNREGISTERED, INSUFFICIENT_TRUST, DELEGATION_DEPTH_EXCEEDED, TOOL_REVOKED,
    TOOL_UNREGISTERED. Revoked agents are refused without this plugin (AGENT_REVOKED).
    """
    if require_tool_registration and tool_registry is None:
        raise TypeError("require_tool_registration needs a tool_registry")
    rules = []
    if require_registration:
        rules.append(_deny("AGENT_UNREGISTERED", "the agent is not registered", registered=False))
    if max_delegation_depth is not None:
        message = f"more than {max_delegation_depth} agents have handed the work on"
        depth = max_delegation_depth + 1
        rules.append(_deny("DELEGATION_DEPTH_EXCEEDED", message, delegation_depth_min=depth))
    if minimum_trust_level is not None:
        rules.append(_allow("trusted", trust_level_min=minimum_trust_level))
        message = f"the agent is trusted less than `{minimum_trust_level}`"
        rules.append(_deny("INSUFFICIENT_TRUST", message))
    return IdentityEnforcer(
        rules, tool_registry, require_tool_registration=require_tool_registration
    )


def egress_enforcer(
    *,
    classes: Iterable[str] = ("SECRET", "PCI", "PII"),
    labels: Iterable[str] = (),
    tools: Iterable[str] = ("*",),
    hosts: Iterable[str] = (),
) -> RulePlugin:
    """Refuses calls that would send data away. Code: EGRESS_BLOCKED.

    `classes` are found in the arguments; `labels` are those that the program gives with a call.
    `tools` and `hosts` are globs; with hosts, only calls that go to one of them are refused.
    """
    where: dict[str, Any] = {"tool_name": {"glob": list(tools)}}
    if hosts := list(hosts):
        where["targets"] = {"host": {"glob": hosts}}
    found = (("data_any", list(classes)), ("data_labels_any", list(labels)))
    rules = [
        _deny(f"EGRESS_BLOCKED:{matcher}", "the call contains data that must stay here", **what)
        for matcher, what in ((name, {name: wanted, **where}) for name, wanted in found if wanted)
    ]
    if not rules:
        raise TypeError("give classes or labels")
    return RulePlugin("egress-enforcer", rules)


def command_governor(
    rules: Iterable[tuple[str, str]],
    *,
    default: str = "block",
    tools: Iterable[str] = ("*",),
) -> RulePlugin:
    """Decides by the commands in the argument `command`; the first rule that matches holds.

    A rule is a pattern and `allow`, `block` or `require_approval`. A pattern without spaces and
    wildcards is the name of a program; others are globs over the whole command. `tools` are globs
    of the tools that run commands. Every command of a line counts: `ls; rm -rf /` is not allowed
    by a rule for `ls`. Codes: COMMAND_BLOCKED, COMMAND_APPROVAL_REQUIRED.
    """
    globs = list(tools)
    names = {"tool_name": {"glob": globs}}
    written = []
    for number, (pattern, action) in enumerate(rules):
        match = {**names, **_command(pattern)}
        written.append(_governed(action, str(number), f"`{pattern}`", match))
    if default != "allow":
        match = {**names, "targets": {"argv": {"glob": ["*"]}}}
        written.append(_governed(default, "default", "no rule allows it", match))
        match = {**names, "targets": {"opaque": True}}
        written.append(_governed(default, "opaque", "what it runs cannot be told", match))
    return RulePlugin("command-governor", written, globs)


def guardian(
    *,
    max_per_minute: int | None = None,
    sequences: Iterable[Sequence[str]] = (),
    utc_hours: tuple[int, int] | None = None,
    kill_after: int | None = None,
) -> RulePlugin:
    """Watches how an agent behaves.

    Refuses calls that come too fast (FREQUENCY_SPIKE), the call that completes one of the
    `sequences` of tools, whatever lies between (SUSPICIOUS_SEQUENCE), and calls outside of
    `utc_hours` (OFF_HOURS). After `kill_after` attempts in a minute the run is ended (AUTO_KILL).
    """
    rules = []
    if kill_after is not None:
        budget = {
            "scope": "agent",
            "limit_calls": kill_after,
            "reset_ms": _WINDOW_MS,
            "on_exceed": "TERMINATE_RUN",
        }
        rules.append(_rule("AUTO_KILL", "budget", {"budget": budget}, "critical"))
    if max_per_minute is not None:
        rules.append(_rate("FREQUENCY_SPIKE", "agent", max_per_minute))
    for number, pattern in enumerate(sequences):
        effect = {"sequence": {"pattern": list(pattern), "on_match": "BLOCK"}}
        rules.append(_rule(f"SUSPICIOUS_SEQUENCE:{number}", "sequence", effect, "critical"))
    if utc_hours is not None and utc_hours != (0, 24):
        start, end = utc_hours
        message = f"the agent works from {start}:00 to {end}:00 UTC"
        rules.append(_deny("OFF_HOURS", message, time={"utc_hours": [[end, start]]}))
    if not rules and utc_hours is None:
        raise TypeError("give at least one of the limits")
    return RulePlugin("guardian", rules)


# Rules


def _command(pattern: str) -> dict[str, Any]:
    if not pattern:
        raise ValueError("a pattern is empty")
    is_program = not any(char in pattern for char in "*?[ ")
    return {"targets": {"program" if is_program else "argv": {"glob": [pattern]}}}


def _governed(action: str, name: str, why: str, match: dict[str, Any]) -> dict[str, Any]:
    if action == "allow":
        return _allow(name, **match)
    if action == "block":
        return _deny(f"COMMAND_BLOCKED:{name}", f"the command is blocked: {why}", **match)
    if action != "require_approval":
        raise ValueError(f"`{action}` is not allow, block or require_approval")
    rule = _deny(f"COMMAND_APPROVAL_REQUIRED:{name}", f"the command needs approval: {why}", **match)
    rule["effect"] |= {"action": "REJECT_WITH_HINT", "require": "approval"}
    return rule


def _rate(code: str, scope: str, most: int) -> dict[str, Any]:
    limit = {"scope": scope, "max_calls": most, "window_ms": _WINDOW_MS, "on_limit": "BLOCK"}
    return _rule(code, "rate_limit", {"rate_limit": limit})


def _allow(name: str, **match: Any) -> dict[str, Any]:
    return _rule(name, "allow", dict(_ALLOWED), "info", match)


def _deny(rule_id: str, message: str, **match: Any) -> dict[str, Any]:
    effect = {"action": "BLOCK", "reason_code": code_in(rule_id), "message": message}
    return _rule(rule_id, "deny", effect, "critical", match)


def _rule(
    rule_id: str,
    kind: str,
    effect: dict[str, Any],
    severity: str = "warn",
    match: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "rule_id": rule_id,
        "kind": kind,
        "enabled": True,
        "match": dict(match or {}),
        "severity": severity,
        "effect": effect,
    }


def code_in(rule_id: str) -> str:
    """Returns the code with which the id of such a rule begins."""
    return rule_id.partition(CODE_END)[0]


def _compiled(name: str, rules: Sequence[dict[str, Any]]) -> Snapshot:
    bundle = msgspec.convert(
        {
            "policy_id": f"spm-{name}",
            "version": "1",
            "mode": "guardrails",
            "defaults": {"decision_on_error": "BLOCK"},
            "selectors": {},
            "rules": rules,
        },
        Bundle,
    )
    wrong = semantic_misfits(bundle)
    if wrong:
        raise ValueError(f"{name}: {wrong[0].message}")
    return compile_bundle(bundle)
