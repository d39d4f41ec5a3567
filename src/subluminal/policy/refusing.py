"""What refuses a call, as approvals see it: an allow or deny rule, or a pack of the kernel.

Approvals bind a grant to `grant_key`. They ask a person only if there is a `requirement`.
"""

from typing import Protocol

from msgspec import Struct

from subluminal.contracts.decision import Decision
from subluminal.contracts.vocabulary import Action, Layer, ReasonCode, Requirement, Severity

_CLIENT_ASKS = (Requirement.APPROVAL, Requirement.CONFIRMATION)
"""What a client's own question to its person can fulfil. A client may be told to answer itself."""
AT_APPROVE = frozenset({Requirement.STEP_UP, Requirement.TICKET, Requirement.HUMAN})
"""What only `sub approve` can fulfil, for a call that asked for it."""


class Refuser(Protocol):
    """A rule or a pack that refuses one call."""

    @property
    def grant_key(self) -> tuple[str, str]:
        """(layer, rule_id), to which a grant is bound besides the call."""

    @property
    def refusal(self) -> Decision:
        """The refusal of the call."""

    @property
    def requirement(self) -> Requirement | None:
        """What is asked of a person; None if nothing is."""

    @property
    def tests_taint(self) -> bool:
        """Whether the rule is about runs of some levels only."""

    @property
    def approver_role(self) -> str | None:
        """The role of the person who should decide, if the policy names it."""

    @property
    def grant_ms(self) -> int | None:
        """The longest duration of a grant in milliseconds, if the rule limits it."""


class PackRefusal(Struct, frozen=True, gc=False):
    """What a pack says about one call, if a person can let the call pass."""

    grant_key: tuple[str, str]
    refusal: Decision
    requirement: Requirement
    tests_taint: bool = False
    approver_role: str | None = None
    grant_ms: int | None = None


def client_may_ask(refuser: Refuser) -> bool:
    """Whether the client may ask its own person whether the call passes."""
    return refuser.requirement in _CLIENT_ASKS and refuser.grant_key[0] != Layer.MANAGED


def grant_fits(given: object, required: Requirement | None) -> bool:
    """Whether a grant gives what a rule requires now.

    `given` is the requirement that the person met; anything else if the grant was given unasked.
    """
    return required not in AT_APPROVE or given is required


def left_to_client(refuser: Refuser) -> Decision:
    """Returns the decision about a call about which the client asks its person."""
    return _passed(refuser.refusal, ReasonCode.CLIENT_ASKED, refuser.refusal.summary)


def blocked(reason_code: str, summary: str) -> Decision:
    """Returns a BLOCK that no rule made."""
    return Decision(
        action=Action.BLOCK,
        rule_id=None,
        severity=Severity.CRITICAL,
        reason_code=reason_code,
        summary=summary,
    )


def granted(refusal: Decision, message: str) -> Decision:
    """Returns the decision about a call that passes because a person approved it."""
    summary = f"a person approved this call: {message}"
    return _passed(refusal, ReasonCode.APPROVAL_GRANTED, summary)


def _passed(refusal: Decision, reason_code: ReasonCode, summary: str) -> Decision:
    return Decision(
        action=Action.ALLOW,
        rule_id=refusal.rule_id,
        severity=refusal.severity,
        reason_code=reason_code,
        summary=summary,
        constraints=refusal.constraints,
    )
