"""The compiled policy of one layer, ready to decide the calls of one run (rule-evaluation).

When a Program is made, selectors are compared, rules about other agents are left out, and names are
indexed. The rules for a tool are collected at its first call and cached. `decide` is the loop that
every call passes; `tracing` repeats it with an explanation.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from subluminal.contracts.agents import AgentFacts
from subluminal.contracts.decision import Decision, Hint
from subluminal.contracts.events import WouldBe
from subluminal.contracts.identity import Identity
from subluminal.contracts.limits import MAX_NAME_BYTES
from subluminal.contracts.vocabulary import (
    Action,
    HintKind,
    Layer,
    Mode,
    ReasonCode,
    RuleKind,
    Severity,
    Taint,
)
from subluminal.policy.patterns import NameIndex, NamePatterns
from subluminal.policy.predicates import applies
from subluminal.policy.rules.entry import Entry, Subject
from subluminal.policy.rules.sequence import SequenceEntry
from subluminal.policy.rules.taint import TaintEntry
from subluminal.policy.snapshot import AGENT_MATCHERS, Snapshot
from subluminal.policy.taint import lowest
from subluminal.policy.tool_rules import PreparedRule, ToolRules
from subluminal.policy.visit import Call, NotEvaluated, Visit
from subluminal.timestamps import parse_rfc3339

_MAX_TOOLS, _MAX_ENTRIES = 1_024, 16_384
"""Tools whose rules are cached, and the rules of all of them together. Names come from outside, so
a full cache is emptied."""

_READ_LIKE = "read_like"
_TAINT_KINDS = frozenset({RuleKind.TAINT, RuleKind.KERNEL})
"""Kinds of rules for which the level of the run counts."""
_SURROGATES = frozenset(map(chr, range(0xD800, 0xE000)))
_ALLOW = Action.ALLOW
_TERMINATE_RUN = Action.TERMINATE_RUN

DEFAULT_ALLOW = Decision(
    action=Action.ALLOW,
    rule_id=None,
    severity=Severity.INFO,
    reason_code=ReasonCode.DEFAULT_ALLOW,
    summary="no rule refused this call",
)
NOT_APPLICABLE = Decision(
    action=Action.ALLOW,
    rule_id=None,
    severity=Severity.INFO,
    reason_code=ReasonCode.POLICY_NOT_APPLICABLE,
    summary="the policy's selectors do not match this run",
)


class Program:
    """A snapshot in one layer, for the identity of one run and its agent."""

    def __init__(
        self,
        layer: Layer,
        snapshot: Snapshot,
        identity: Identity,
        agent: AgentFacts = AgentFacts(),  # noqa: B008 - frozen
    ) -> None:
        self.layer = layer
        self.snapshot = snapshot
        self.ref = snapshot.ref
        self.mode = snapshot.mode
        self.applies = applies(snapshot.data["selectors"], identity)
        self.identity = identity
        self.agent = agent
        self.asks_who = snapshot.asks(AGENT_MATCHERS)
        """whether a rule asks who acts"""
        expires_at = snapshot.data.get("expires_at")
        self.expires_ms = None if expires_at is None else parse_rfc3339(expires_at)
        """time from which the policy refuses every call; None if it has no end"""
        rules = snapshot.data["rules"]
        self.places = self._places()
        """for each of `rules` its place in the policy: rules about other agents are left out"""
        self.rules = [PreparedRule(rules[place]) for place in self.places]
        self.servers = NameIndex([_patterns(rule, "server_name") for rule in self.rules])
        self.tools = NameIndex([_patterns(rule, "tool_name") for rule in self.rules])
        defaults = snapshot.data["defaults"]
        self._on_error = Action(defaults["decision_on_error"])
        self._fail_open_reads: bool = defaults["fail_open_read_tools"]
        self.start = Taint(defaults.get("taint", Taint.SYSTEM))
        """level that a run starts with at most"""
        self._taint_rules = [rule for rule in self.rules if rule.data["kind"] == RuleKind.TAINT]
        self.asks_kernel = any(rule.data["kind"] == RuleKind.KERNEL for rule in self.rules)
        # A rule about other agents counts: a caller may claim to be one of them.
        self.asks_taint = self.start is not Taint.SYSTEM or any(
            rule["kind"] in _TAINT_KINDS or "taint" in rule["match"] for rule in rules
        )
        self.tool_rules: dict[tuple[str, str], ToolRules] = {}
        """cache of `rules_for`, by server and tool"""
        self._cached_entries = 0

    def _places(self) -> Sequence[int]:
        rules = self.snapshot.data["rules"]
        if not self.asks_who:
            return range(len(rules))
        # Most policies do not ask who acts, and need not load this.
        from subluminal.policy.agents import Who, settled

        return settled(rules, Who(self.identity, self.agent))

    def rules_for(self, server_name: str, tool_name: str) -> ToolRules | None:
        """Returns the rules that can matter for this tool; None if a name cannot be matched."""
        key = (server_name, tool_name)
        found = self.tool_rules.get(key)
        if found is None:
            if not (_is_name(server_name) and _is_name(tool_name)):
                return None
            found = self._collect(server_name, tool_name)
            if len(self.tool_rules) >= _MAX_TOOLS or self._cached_entries > _MAX_ENTRIES:
                self.tool_rules.clear()
                self._cached_entries = 0
            self.tool_rules[key] = found
            self._cached_entries += len(found.entries)
        return found

    def _collect(self, server_name: str, tool_name: str) -> ToolRules:
        hits = sorted(self.servers.match(server_name) & self.tools.match(tool_name))
        names = (self.layer.value, self.snapshot.policy_id, server_name, tool_name)
        subject = Subject(*names, self.identity.agent_id)
        return ToolRules([(index, self.rules[index]) for index in hits], subject)

    def unjudged(self, server_name: str, tool_name: str | None) -> Taint:
        """Returns the lowest level that a taint rule about these names may lower the run to."""
        is_known = tool_name is not None and _is_name(tool_name) and _is_name(server_name)
        if not is_known or tool_name is None:
            return lowest(map(_level, self._taint_rules))
        named = self.servers.match(server_name) & self.tools.match(tool_name)
        return lowest(_level(rule) for index, rule in enumerate(self.rules) if index in named)

    def read_from(self, server_name: str) -> tuple[Taint, str | None]:
        """Returns the level of the first rule about all text of a server, and the rule."""
        if not _is_name(server_name):
            return self.unjudged(server_name, None), None
        named = self.servers.match(server_name)
        for index, rule in enumerate(self.rules):
            if index in named and rule.is_about_servers:
                return _level(rule), rule.data["rule_id"]
        return Taint.SYSTEM, None

    def decide(self, rules: ToolRules, visit: Visit) -> Decision:
        """Visits every rule of a tool and returns the decision that the rules make.

        `enforced` turns that into what the policy's mode does.
        """
        allowed = first = terminate = None
        args = visit.args
        for is_access, args_test, visit_rule, entry in rules.unpacked:
            if is_access and visit.access_settled:
                continue
            try:
                if args_test is not None and args is not None:
                    if not args_test(args):
                        continue
                elif entry.condition is not None and not entry.condition(visit):
                    continue
                found = visit_rule(visit)
            except NotEvaluated as error:
                found = self.not_evaluated(entry, visit, error)
            if found is None:
                continue
            action = found.action
            if action is _ALLOW:
                allowed = allowed or found
            elif action is _TERMINATE_RUN:
                terminate = terminate or found
            else:
                first = first or found
        return terminate or first or allowed or DEFAULT_ALLOW

    def not_evaluated(self, entry: Entry, visit: Visit, error: NotEvaluated) -> Decision | None:
        """Decides for a rule whose arguments were too large to inspect, or whose pack is missing.

        Returns None for a taint rule that is passed over.
        """
        if isinstance(entry, TaintEntry):
            if visit.taint_settled:
                return None
            if entry.rank:
                entry.visit(visit)  # what cannot be judged counts against the call
        if isinstance(entry, SequenceEntry):
            entry.note(visit)  # for the same reason
        # A tag acts on the rules below it, here too.
        classes = entry.classes_above | visit.classes
        return self.on_error(classes, entry.rule_id, str(error))

    def expired(self, visit: Visit) -> Decision:
        """Refuses a call after the end of the policy. No grant can let it pass."""
        visit.refused_by = None
        visit.limited_by = visit.grants_used = ()
        visit.trips = ()
        return Decision(
            action=Action.BLOCK,
            rule_id=None,
            severity=Severity.CRITICAL,
            reason_code=ReasonCode.POLICY_EXPIRED,
            summary=f"policy `{self.snapshot.policy_id}` expired at"
            f" {self.snapshot.data['expires_at']}",
        )

    def on_error(self, classes: AbstractSet[str], rule_id: str | None, why: str) -> Decision:
        """Decides for a rule that could not be evaluated (Pack 2.1)."""
        summary = f"the policy could not be evaluated: {why}"
        return self._fallback(classes, rule_id, ReasonCode.EVALUATION_ERROR, summary)

    def failure(self, call: Call, reason_code: ReasonCode, summary: str) -> Decision:
        """Decides a call that failed for another reason than the policy, without its rules."""
        rules = self.rules_for(call.server_name, call.tool_name)
        classes = rules.classes if rules else frozenset[str]()
        if reason_code is ReasonCode.AMBIGUOUS_MESSAGE:
            classes = frozenset()  # nobody can be sure which tool an ambiguous message names
        return self._fallback(classes, None, reason_code, summary)

    def _fallback(
        self, classes: AbstractSet[str], rule_id: str | None, code: ReasonCode, summary: str
    ) -> Decision:
        readable = self._fail_open_reads and _READ_LIKE in classes
        return Decision(
            action=_ALLOW if readable else self._on_error,
            rule_id=rule_id,
            severity=Severity.CRITICAL,
            reason_code=code,
            summary=summary,
        )

    def enforced(self, written: Decision) -> tuple[Decision, WouldBe | None]:
        """Turns the decision of the rules into what this policy's mode does."""
        if written.action is _ALLOW:
            return written, None
        if self.mode is Mode.OBSERVE:
            return _observed(written)
        if self.mode is Mode.CONTROL and written.action is Action.BLOCK:
            given = written.hint or Hint(
                hint_text=written.summary,
                retry_advice="do not retry this call unchanged",
                hint_kind=HintKind.OTHER,
            )
            rejected = msgspec.structs.replace(written, action=Action.REJECT_WITH_HINT, hint=given)
            return rejected, None
        hint = written.hint
        offers = hint is not None and hint.suggested_args is not None  # {} is a suggestion too
        if hint is None or offers or written.action is Action.REJECT_WITH_HINT:
            return written, None
        # A BLOCK or THROTTLE has a hint only if the hint suggests other arguments.
        return msgspec.structs.replace(written, hint=None), None


def _observed(written: Decision) -> tuple[Decision, WouldBe]:
    decision = Decision(
        action=Action.ALLOW,
        rule_id=written.rule_id,
        severity=written.severity,
        reason_code=written.reason_code,
        summary=f"observed, would have been {written.action.value}: {written.summary}",
    )
    would_be = WouldBe(
        action=written.action,
        rule_id=written.rule_id,
        severity=written.severity,
        reason_code=written.reason_code,
    )
    return decision, would_be


def _is_name(text: str) -> bool:
    """Whether a name can be matched: not too long, and without lone surrogates."""
    if text.isascii():
        return len(text) <= MAX_NAME_BYTES
    if _SURROGATES.intersection(text):
        return False
    return len(text.encode()) <= MAX_NAME_BYTES


def _level(rule: PreparedRule) -> Taint:
    """Returns the level that a taint rule lowers to; SYSTEM for every other rule."""
    effect = rule.data["effect"]
    return Taint(effect["taint"]["lower_to"]) if "taint" in effect else Taint.SYSTEM


def _patterns(rule: PreparedRule, field: str) -> NamePatterns:
    spec: dict[str, Any] = rule.data["match"][field]
    return NamePatterns(**spec)
