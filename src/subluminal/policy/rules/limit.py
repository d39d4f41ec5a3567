"""What all limits share: refusals, and a person's exceptions.

Limits are budgets, rate limits, breakers, dedupe and sequence rules.

A person may let one call pass a limit that refused it (`sub promote --session`). Then the limit
counts the call as before and does not refuse it; every other rule holds.
"""

from typing import Any

from subluminal.contracts.decision import Decision, Hint, Terminate
from subluminal.contracts.vocabulary import Action, HintKind, ReasonCode, RuleKind, Scope
from subluminal.policy.rules.entry import Condition, Entry, Subject
from subluminal.policy.visit import Visit

LIMIT_KINDS = frozenset(
    {
        RuleKind.BUDGET,
        RuleKind.RATE_LIMIT,
        RuleKind.BREAKER,
        RuleKind.DEDUPE,
        RuleKind.SEQUENCE,
    }
)


class LimitEntry(Entry):
    """A rule that refuses calls because of the calls before them."""

    __slots__ = ("grant_key", "scope")

    def __init__(
        self, index: int, rule: dict[str, Any], condition: Condition | None, subject: Subject
    ) -> None:
        super().__init__(index, rule, condition)
        self.grant_key = (subject.layer, self.rule_id)
        """(layer, rule_id), to which a grant is bound besides the call"""
        self.scope = Scope(rule["effect"][rule["kind"]].get("scope", Scope.RUN))

    def refuse(
        self,
        visit: Visit,
        action: str,
        reason_code: ReasonCode,
        summary: str,
        *,
        kind: HintKind,
        hint_text: str | None,
        advice: str,
        terminate_code: str | None = None,
        backoff_ms: int | None = None,
    ) -> Decision:
        """Refuses the call, unless a person let this very call pass the rule.

        A refusal has the fields that its action requires (Pack 1.6).
        """
        if self.grant_key in visit.call.excused:
            visit.grants_used += (self.grant_key,)
            return self._granted(summary)
        visit.limited_by += (self.grant_key,)
        chosen = Action(action)
        hint = Hint(hint_text=hint_text or summary, retry_advice=advice, hint_kind=kind)
        ends = chosen is Action.TERMINATE_RUN
        return Decision(
            action=chosen,
            rule_id=self.rule_id,
            severity=self.severity,
            reason_code=reason_code,
            summary=summary,
            backoff_ms=backoff_ms if chosen is Action.THROTTLE else None,
            hint=None if ends else hint,
            terminate=Terminate(
                terminate_code=terminate_code or reason_code, terminate_message=summary
            )
            if ends
            else None,
        )

    def _granted(self, summary: str) -> Decision:
        return Decision(
            action=Action.ALLOW,
            rule_id=self.rule_id,
            severity=self.severity,
            reason_code=ReasonCode.APPROVAL_GRANTED,
            summary=f"a person let this call pass: {summary}",
        )


_SPAN = {
    Scope.RUN: "in this run",
    Scope.TOOL: "of this tool",
    Scope.SERVER_TOOL: "of this tool",
    Scope.AGENT: "of this agent",
    Scope.AGENT_TOOL: "of this tool by this agent",
}


def span(scope: Scope) -> str:
    """Returns words for the calls that share a counter of this scope."""
    return _SPAN[scope]
