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
_ANY_COMMAND = {"argv": {"glob": ["*"]}}
_ANY_PATH = {"path": {"glob": ["*"]}}
_ANY_HOST = {"host": {"glob": ["*"]}}
_ALLOWED = {"action": "ALLOW", "reason_code": "ALLOWED", "message": "this call is allowed"}


class RulePlugin:
    """A plugin whose decisions are those of rules."""

    def __init__(
        self,
        name: str,
        rules: Sequence[dict[str, Any]],
        *,
        commands: Iterable[str] = (),
        urls: Iterable[str] = (),
    ) -> None:
        self.name = name
        self.snapshot = _compiled(name, rules)
        self.commands = tuple(commands)
        """globs of tools whose argument `command` is a command line"""
        self.urls = tuple(urls)
        """globs of tools whose argument `url` is a URL"""


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
    rules = [rate_rule(code, scope, most) for code, scope, most in limits if most is not None]
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
        rules.append(
            deny_rule("AGENT_UNREGISTERED", "the agent is not registered", registered=False)
        )
    if max_delegation_depth is not None:
        message = f"more than {max_delegation_depth} agents have handed the work on"
        depth = max_delegation_depth + 1
        rules.append(deny_rule("DELEGATION_DEPTH_EXCEEDED", message, delegation_depth_min=depth))
    if minimum_trust_level is not None:
        rules.append(_allow("trusted", trust_level_min=minimum_trust_level))
        message = f"the agent is trusted less than `{minimum_trust_level}`"
        rules.append(deny_rule("INSUFFICIENT_TRUST", message))
    return IdentityEnforcer(
        rules, tool_registry, require_tool_registration=require_tool_registration
    )


def egress_enforcer(
    *,
    classes: Iterable[str] = ("SECRET", "PCI", "PII"),
    labels: Iterable[str] = (),
    tools: Iterable[str] = ("*",),
    hosts: Iterable[str] = (),
    allowed_hosts: Iterable[str] = (),
) -> RulePlugin:
    """Refuses calls that would send data away. Code: EGRESS_BLOCKED.

    `classes` are found in the arguments; `labels` are those that the program gives with a call.
    `tools`, `hosts` and `allowed_hosts` are globs. With `hosts`, only calls that go to one of them
    are refused; calls that go to `allowed_hosts` only are not. The host is that of the argument
    `url`, or of what the settings say about the tool.
    """
    globs, denied_hosts, allowed = list(tools), list(hosts), list(allowed_hosts)
    found = {"data_any": list(classes), "data_labels_any": list(labels)}
    rules = []
    for matcher, wanted in found.items():
        if not wanted:
            continue
        where: dict[str, Any] = {"tool_name": {"glob": globs}, matcher: wanted}
        if allowed:
            touched = {"host": {"glob": allowed}, **_ANY_COMMAND, **_ANY_PATH}
            rules.append(_allow(f"allowed:{matcher}", targets=touched, **where))
        if denied_hosts:
            where["targets"] = {"host": {"glob": denied_hosts}}
        message = "the call contains data that must stay here"
        rules.append(deny_rule(f"EGRESS_BLOCKED:{matcher}", message, **where))
    if not rules:
        raise TypeError("give classes or labels")
    has_hosts = bool(denied_hosts or allowed)
    return RulePlugin("egress-enforcer", rules, urls=globs if has_hosts else ())


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
    written, allowed = [], []
    for number, (pattern, action) in enumerate(rules):
        commands = _commands(pattern)
        if action == "allow":
            # A line may be made of commands that different rules allow.
            allowed += commands
            touched = {"argv": {"glob": list(allowed)}, **_ANY_PATH, **_ANY_HOST}
            written.append(_allow(f"allowed:{number}", targets=touched, **names))
        else:
            match = {**names, "targets": {"argv": {"glob": commands}}}
            written.append(_governed(action, str(number), f"`{pattern}`", match))
    if default != "allow":
        match = {**names, "targets": {"argv": {"glob": ["*"]}}}
        written.append(_governed(default, "default", "no rule allows it", match))
        match = {**names, "targets": {"opaque": True}}
        written.append(_governed(default, "opaque", "what it runs cannot be told", match))
    return RulePlugin("command-governor", written, commands=globs)


# Rules


def _commands(pattern: str) -> list[str]:
    """Returns globs over the words of a command, of which the program's name is the first."""
    if not pattern:
        raise ValueError("a pattern is empty")
    is_program = not any(char in pattern for char in "*?[ ")
    return [pattern, f"{pattern} *"] if is_program else [pattern]


def _governed(action: str, name: str, why: str, match: dict[str, Any]) -> dict[str, Any]:
    if action == "block":
        return deny_rule(f"COMMAND_BLOCKED:{name}", f"the command is blocked: {why}", **match)
    if action != "require_approval":
        raise ValueError(f"`{action}` is not allow, block or require_approval")
    rule = deny_rule(
        f"COMMAND_APPROVAL_REQUIRED:{name}", f"the command needs approval: {why}", **match
    )
    rule["effect"] |= {"action": "REJECT_WITH_HINT", "require": "approval"}
    return rule


def rate_rule(code: str, scope: str, most: int) -> dict[str, Any]:
    """Returns a rule that limits calls in any minute."""
    limit = {"scope": scope, "max_calls": most, "window_ms": _WINDOW_MS, "on_limit": "BLOCK"}
    return rule_of(code, "rate_limit", {"rate_limit": limit})


def _allow(name: str, **match: Any) -> dict[str, Any]:
    return rule_of(name, "allow", dict(_ALLOWED), "info", match)


def deny_rule(rule_id: str, message: str, **match: Any) -> dict[str, Any]:
    """Returns a rule that refuses calls."""
    effect = {"action": "BLOCK", "reason_code": code_in(rule_id), "message": message}
    return rule_of(rule_id, "deny", effect, "critical", match)


def rule_of(
    rule_id: str,
    kind: str,
    effect: dict[str, Any],
    severity: str = "warn",
    match: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Returns a rule."""
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
