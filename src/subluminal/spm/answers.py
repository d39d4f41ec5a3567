"""Asks a callback of the program about a call that needs a person, and tells what it answered."""

from collections.abc import Callable
from typing import Any, NamedTuple

from subluminal.contracts.vocabulary import Layer, ReasonCode, Requirement
from subluminal.core.controls.grants import find_waiting
from subluminal.errors import SubluminalError
from subluminal.operator.approving import approve
from subluminal.spm.hooks import Callbacks, asked
from subluminal.spm.types import (
    AgentActionRequest,
    Decision,
    DecisionOutcome,
    EventOutcome,
    Reason,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subluminal.config.places import Places
    from subluminal.config.settings import ApprovalSettings

Ask = Callable[[AgentActionRequest, Decision], Any]
"""A callback that answers: True or False; of a ticket, its reference or None. It may be async."""


class Codes(NamedTuple):
    """The codes of the answers to one question."""

    callback: str
    yes: str
    no: str
    timeout: str
    failure: str


CODES: dict[DecisionOutcome, Codes] = {
    "REQUIRE_APPROVAL": Codes(
        "on_approval_required", "APPROVED", "REJECTED", "APPROVAL_TIMEOUT", "REJECTED"
    ),
    "STEP_UP": Codes(
        *("on_step_up_required", "STEP_UP_PASSED", "STEP_UP_FAILED"),
        *("STEP_UP_ERROR", "STEP_UP_ERROR"),
    ),
    "REQUIRE_TICKET": Codes(
        *("on_ticket_required", "TICKET_VALIDATED", "TICKET_MISSING"),
        *("TICKET_ERROR", "TICKET_ERROR"),
    ),
    "REQUIRE_HUMAN": Codes(
        *("on_human_required", "HUMAN_APPROVED", "HUMAN_REJECTED"),
        *("HUMAN_REVIEW_ERROR", "HUMAN_REVIEW_ERROR"),
    ),
}
"""The codes of answers, by the outcome that asks for them."""

_MET = {"STEP_UP": Requirement.STEP_UP, "REQUIRE_HUMAN": Requirement.HUMAN}


class Answer(NamedTuple):
    """What a callback answered."""

    outcome: EventOutcome
    reason: Reason
    ticket: str | None = None

    @property
    def is_yes(self) -> bool:
        """Whether the call may go on."""
        return self.outcome == "APPROVED"

    @property
    def recorded(self) -> ReasonCode:
        """The reason code of the refusal that follows from a no."""
        is_timeout = self.outcome == "TIMEOUT"
        return ReasonCode.APPROVAL_TIMEOUT if is_timeout else ReasonCode.APPROVAL_DENIED


class Questions:
    """The callbacks that answer questions, by outcome."""

    def __init__(
        self, given: dict[DecisionOutcome, Ask | None], timeout_ms: int, callbacks: Callbacks
    ) -> None:
        self._given = given
        self._timeout_ms = timeout_ms
        self._callbacks = callbacks

    def can_answer(self, outcome: DecisionOutcome) -> bool:
        """Whether the program has a callback for this question."""
        return self._given.get(outcome) is not None

    async def ask(self, request: AgentActionRequest, decision: Decision) -> Answer:
        """Asks, for `approval_timeout_ms` at most. A callback that fails says no."""
        codes, callback = CODES[decision.outcome], self._given[decision.outcome]
        assert callback is not None
        try:
            said = await asked(callback, request, decision, timeout_ms=self._timeout_ms)
        except TimeoutError:
            message = f"{codes.callback} did not answer within {self._timeout_ms} ms"
            return Answer("TIMEOUT", Reason(codes.timeout, message))
        except Exception as error:  # noqa: BLE001 - nobody has agreed
            await self._callbacks.failed(error, codes.callback)
            message = f"{codes.callback} failed: {type(error).__name__}"
            return Answer("REJECTED", Reason(codes.failure, message))
        if decision.outcome == "REQUIRE_TICKET":
            return _of_ticket(said, codes)
        if said is True:
            return Answer("APPROVED", Reason(codes.yes, f"{codes.callback} agreed"))
        return Answer("REJECTED", Reason(codes.no, f"{codes.callback} did not agree"))


def _of_ticket(said: Any, codes: Codes) -> Answer:
    if isinstance(said, str) and said.strip():
        ticket = said.strip()
        return Answer("APPROVED", Reason(codes.yes, f"{codes.callback} named a ticket"), ticket)
    return Answer("REJECTED", Reason(codes.no, f"{codes.callback} named no ticket"))


def may_answer(places: "Places", approval_id: str) -> bool:
    """Whether a program may answer: not for a rule of the managed layer, which asks a person."""
    try:
        waiting = find_waiting(places, approval_id)
    except SubluminalError:
        return False
    return waiting.request.approval.layer is not Layer.MANAGED


def grant(
    places: "Places",
    approval_id: str,
    outcome: DecisionOutcome,
    answer: Answer,
    settings: "ApprovalSettings",
) -> None:
    """Writes and records the grant that follows from a yes. Raises SubluminalError."""
    approve(
        places,
        approval_id,
        reason=f"{CODES[outcome].callback} of the program agreed",
        ticket=answer.ticket,
        met=_MET.get(outcome),
        settings=settings,
    )
