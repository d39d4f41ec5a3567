"""The six decisions and the four kinds of refusal, as frozen structs. No behaviour.

In JSON a decision is an object whose `kind` is one of six words. The set is closed: a seventh kind
would be another algebra.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from subluminal.kernel.basis import Basis
from subluminal.kernel.envelope import IntentEnvelope


class DecisionKind(StrEnum):
    """What the kernel says about an intent."""

    EXECUTE = "EXECUTE"
    REFUSE = "REFUSE"
    ESCALATE = "ESCALATE"
    REQUEST_CONFIRMATION = "REQUEST_CONFIRMATION"
    DEFER = "DEFER"
    REWRITE = "REWRITE"


class RefusalKind(StrEnum):
    """Whose rule refuses."""

    SECURITY = "SECURITY"
    BUSINESS_RULE = "BUSINESS_RULE"
    AUTH = "AUTH"
    STATE = "STATE"


class EscalateTo(StrEnum):
    """Who is asked instead."""

    HUMAN = "human"
    SUPERVISOR = "supervisor"


class Refusal(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Why an intent was refused, in words for its user and in words for its operator."""

    kind: RefusalKind
    code: str
    user_facing: str
    detail: str | None = None


class _Decided(Struct, frozen=True, rename="camel", tag_field="kind"):
    """What all six share. `basis` is their last field."""

    if TYPE_CHECKING:
        kind: ClassVar[DecisionKind]


class Execute(_Decided, frozen=True, tag="EXECUTE"):
    """The intent may run as it is."""

    kind: ClassVar[DecisionKind] = DecisionKind.EXECUTE
    basis: tuple[Basis, ...] = ()


class Refuse(_Decided, frozen=True, tag="REFUSE"):
    """The intent must not run."""

    kind: ClassVar[DecisionKind] = DecisionKind.REFUSE
    refusal: Refusal
    basis: tuple[Basis, ...] = ()


class Escalate(_Decided, frozen=True, tag="ESCALATE"):
    """Somebody with more authority must decide."""

    kind: ClassVar[DecisionKind] = DecisionKind.ESCALATE
    to: EscalateTo
    reason: str
    basis: tuple[Basis, ...] = ()


class RequestConfirmation(_Decided, frozen=True, tag="REQUEST_CONFIRMATION"):
    """The intent may run if its user says so."""

    kind: ClassVar[DecisionKind] = DecisionKind.REQUEST_CONFIRMATION
    prompt: str
    basis: tuple[Basis, ...] = ()


class Defer(_Decided, frozen=True, tag="DEFER"):
    """The intent waits for a signal, then it is adjudicated again."""

    kind: ClassVar[DecisionKind] = DecisionKind.DEFER
    signal: str
    timeout_ms: int
    basis: tuple[Basis, ...] = ()


class Rewrite(_Decided, frozen=True, tag="REWRITE"):
    """The intent was unsafe as it is; `rewritten` is its safe equivalent.

    Allowed are sanitising (redact untrusted content), normalising (Unicode, whitespace, homoglyphs)
    and mechanical capping (a quantity above the maximum). What changes the outcome that the user
    wants is a REFUSE or a REQUEST_CONFIRMATION.
    """

    kind: ClassVar[DecisionKind] = DecisionKind.REWRITE
    rewritten: IntentEnvelope
    reason: str
    basis: tuple[Basis, ...] = ()


Decision = Execute | Refuse | Escalate | RequestConfirmation | Defer | Rewrite
DECISIONS = (Execute, Refuse, Escalate, RequestConfirmation, Defer, Rewrite)


def refuse(
    kind: RefusalKind | str, code: str, user_facing: str, detail: str | None = None
) -> Refusal:
    """Makes a refusal; raises ValueError if its kind is not one of the four."""
    return Refusal(RefusalKind(kind), code, user_facing, detail)
