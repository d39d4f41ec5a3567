"""Rule kinds `allow` and `deny`: the first that matches settles access (Pack 2.5, rule-evaluation).

With `require`, the rule refuses calls until a person has granted them (no-call-waits). With
`suggest`, a deny offers corrected arguments, if these would pass.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from subluminal.contracts.decision import Decision, Hint
from subluminal.contracts.vocabulary import Action, HintKind, ReasonCode, Requirement
from subluminal.policy.predicates import is_number, same_value
from subluminal.policy.refusing import granted
from subluminal.policy.rules.entry import Condition, Entry, Subject
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
    Requirement.STEP_UP: "a person must authenticate again before this call",
    Requirement.TICKET: "this call needs a ticket",
    Requirement.HUMAN: "a person must do this instead of the agent",
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
        "tests_taint",
    )

    is_access = True

    def __init__(
        self,
        index: int,
        rule: dict[str, Any],
        condition: Condition | None,
        subject: Subject,
        passes: Callable[[dict[str, Any], Visit], bool],
    ) -> None:
        super().__init__(index, rule, condition)
        effect = rule["effect"]
        self._effect = effect
        self._passes = passes
        self.grant_key = (subject.layer, self.rule_id)
        """(layer, rule_id), to which a grant is bound besides the call"""
        self.requirement = None if effect["require"] is None else Requirement(effect["require"])
        """what the rule asks of a person; None if it asks nothing"""
        self.tests_taint = "taint" in rule["match"]
        """whether the rule is about runs of some levels only"""
        self.allows = effect["action"] == Action.ALLOW
        self._refuses = not self.allows or self.requirement is not None
        self.refusal = self._decide(effect)
        self._granted = granted(self.refusal, effect["message"])

    def visit(self, visit: Visit) -> Decision | None:
        """Settles access: later allow and deny rules are passed over."""
        visit.access_settled = True
        if self._refuses:
            if self._is_granted(visit):
                visit.grants_used += (self.grant_key,)
                return self._granted
            visit.refused_by = self
        if not self._effect["suggest"] or visit.args is None:
            return self.refusal
        return self._with_suggestion(visit.args, visit)

    def needs_grant(self) -> bool:
        """Whether this rule refuses calls until a person has granted them."""
        return self.requirement is not None

    @property
    def approver_role(self) -> str | None:
        """The role of the person who should decide, as the policy names it."""
        role: str | None = self._effect["approver_role"]
        return role

    @property
    def grant_ms(self) -> int | None:
        """The longest duration of a grant in milliseconds, if the rule limits it."""
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
            constraints=effect.get("constraints"),
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
                # Never say how to approve: agents have shells (local-is-not-trusted).
                retry_advice="a person has been asked: tell your user, go on with other work, and"
                " retry the same call with the same arguments once it is approved",
                hint_kind=HintKind.SAFETY,
            ),
            constraints=effect.get("constraints"),
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

    def _with_suggestion(self, args: dict[str, Any], visit: Visit) -> Decision:
        mended = suggested_args(self._effect["suggest"], args)
        if mended is None or not self._passes(mended, visit):
            return self.refusal
        return replace(self.refusal, hint=self._hint(mended))


def suggested_args(
    suggest: dict[str, dict[str, Any]], args: dict[str, Any]
) -> dict[str, Any] | None:
    """Returns the corrected arguments; None if the suggestions change nothing."""
    mended = dict(args)
    for key, operation in suggest.items():
        _mend(mended, key, operation)
    # Only keys with a suggestion are compared: the others may be nested too deeply to compare.
    return mended if any(_differs(mended, args, key) for key in suggest) else None


def _differs(mended: dict[str, Any], args: dict[str, Any], key: str) -> bool:
    if key not in mended or key not in args:
        return (key in mended) != (key in args)
    return mended[key] is not args[key] and not same_value(mended[key], args[key])


def _mend(args: dict[str, Any], key: str, operation: dict[str, Any]) -> None:
    if operation["remove"]:
        args.pop(key, None)
    elif "set" in operation:
        args[key] = operation["set"]
    elif operation["one_of"]:
        if not any(same_value(args.get(key), choice) for choice in operation["one_of"]):
            args[key] = operation["one_of"][0]
    elif is_number(args.get(key)):
        args[key] = clamped(args[key], operation["clamp_min"], operation["clamp_max"])


def clamped(value: Any, low: Any, high: Any) -> Any:
    """Returns the number between two bounds that is closest to `value`. A bound may be None."""
    if low is not None and value < low:
        return low
    if high is not None and value > high:
        return high
    return value
