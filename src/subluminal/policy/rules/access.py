"""Rule kinds `allow` and `deny`: the first that matches settles access (Pack 2.5, rule-evaluation).

With `require`, the rule asks for a person's grant first (no-call-waits); with `suggest`, a deny says how the
arguments would pass.
"""

from collections.abc import Callable
from typing import Any

from subluminal.contracts.decision import Decision, Hint
from subluminal.contracts.vocabulary import Action, HintKind, ReasonCode, Requirement
from subluminal.policy.rules.entry import Entry, Guard, Subject
from subluminal.policy.suggesting import suggested_args
from subluminal.policy.visit import Visit

_REASONS = {
    Requirement.APPROVAL: ReasonCode.APPROVAL_REQUIRED,
    Requirement.STEP_UP: ReasonCode.STEP_UP_REQUIRED,
    Requirement.TICKET: ReasonCode.TICKET_REQUIRED,
    Requirement.HUMAN: ReasonCode.HUMAN_REQUIRED,
    Requirement.CONFIRMATION: ReasonCode.CONFIRMATION_REQUIRED,
}
_WANTED = {
    Requirement.APPROVAL: "a person must approve this call",
    Requirement.STEP_UP: "this call needs a stronger sign-in by a person",
    Requirement.TICKET: "this call needs a ticket",
    Requirement.HUMAN: "a person must make this call",
    Requirement.CONFIRMATION: "a person must confirm this call",
}


class AccessEntry(Entry):
    """An `allow` or `deny` rule."""

    __slots__ = (
        "_effect",
        "_granted",
        "_passes",
        "_refuses",
        "allows",
        "grant_key",
        "refusal",
        "requirement",
    )

    is_access = True

    def __init__(
        self,
        index: int,
        rule: dict[str, Any],
        guard: Guard | None,
        subject: Subject,
        passes: Callable[[dict[str, Any], int], bool],
    ) -> None:
        super().__init__(index, rule, guard)
        effect = rule["effect"]
        self._effect = effect
        self._passes = passes
        self.grant_key = (subject.layer, self.rule_id)
        """what a grant is bound to, besides the call"""
        self.requirement = None if effect["require"] is None else Requirement(effect["require"])
        """what the rule asks of a person, if it does"""
        self.allows = effect["action"] == Action.ALLOW
        self._refuses = not self.allows or self.requirement is not None
        self.refusal = self._decide(effect)
        self._granted = Decision(
            action=Action.ALLOW,
            rule_id=self.rule_id,
            severity=self.severity,
            reason_code=ReasonCode.APPROVAL_GRANTED,
            summary=f"a person has let this call pass: {effect['message']}",
        )

    def visit(self, visit: Visit) -> Decision | None:
        """Settles access, once."""
        visit.access_settled = True
        if self._refuses:
            if self._is_granted(visit):
                visit.grants_used += (self.grant_key,)
                return self._granted
            visit.refused_by = self
        if not self._effect["suggest"] or visit.args is None:
            return self.refusal
        return self._with_suggestion(visit.args, visit.wall_ms)

    def needs_grant(self) -> bool:
        """Whether only a person can let a call pass this rule."""
        return self.requirement is not None

    @property
    def approver_role(self) -> str | None:
        """Who should decide, in the author's words."""
        role: str | None = self._effect["approver_role"]
        return role

    @property
    def grant_ms(self) -> int | None:
        """The longest that a grant may last, if the author says."""
        longest: int | None = self._effect["expires_ms"]
        return longest

    def _is_granted(self, visit: Visit) -> bool:
        call = visit.call
        if self.requirement is not None and self.grant_key in call.granted:
            return True
        return self.grant_key in call.lifted

    def _decide(self, effect: dict[str, Any]) -> Decision:
        if self.requirement is not None:
            return self._require(self.requirement, effect)
        action = Action(effect["action"])
        return Decision(
            action=action,
            rule_id=self.rule_id,
            severity=self.severity,
            reason_code=effect["reason_code"],
            summary=effect["message"],
            hint=None if action is Action.ALLOW else self._hint(None),
        )

    def _require(self, requirement: Requirement, effect: dict[str, Any]) -> Decision:
        who = f" ({effect['approver_role']})" if effect["approver_role"] else ""
        return Decision(
            action=Action.REJECT_WITH_HINT,
            rule_id=self.rule_id,
            severity=self.severity,
            reason_code=_REASONS[requirement],
            summary=f"{_WANTED[requirement]}{who}: {effect['message']}",
            hint=Hint(
                hint_text=effect["hint_text"] or f"{_WANTED[requirement]}{who}",
                # Not how to approve: that is for a person, and agents have shells (local-is-not-trusted).
                retry_advice="a person has been asked: tell your user, go on with other work, and"
                " retry the same call with the same arguments once it is approved",
                hint_kind=HintKind.SAFETY,
            ),
        )

    def _hint(self, suggested: dict[str, Any] | None) -> Hint:
        effect = self._effect
        if suggested is not None:
            advice = "retry with the suggested arguments"
        else:
            advice = "do not retry this call unchanged"
        return Hint(
            hint_text=effect["hint_text"] or effect["message"],
            suggested_args=suggested,
            retry_advice=advice,
            hint_kind=HintKind.ARG_FIX if effect["suggest"] else HintKind.OTHER,
        )

    def _with_suggestion(self, args: dict[str, Any], wall_ms: int) -> Decision:
        mended = suggested_args(self._effect["suggest"], args)
        if mended is None or not self._passes(mended, wall_ms):
            return self.refusal
        refusal = self.refusal
        return Decision(
            action=refusal.action,
            rule_id=refusal.rule_id,
            severity=refusal.severity,
            reason_code=refusal.reason_code,
            summary=refusal.summary,
            hint=self._hint(mended),
        )
