"""Asks callbacks of the program about calls that need a person, and reads their answers.

About a rule's requirement, the answer becomes a grant, and the call is tried again; a person may be
faster with `sub approve` or `sub deny`. A plugin's requirement is met by the answer alone. A no is
the answer to this call only.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from subluminal.adapters.in_process.guarding.asking import Question, is_left_to_program
from subluminal.adapters.in_process.guarding.calls import GuardedCall
from subluminal.adapters.in_process.guarding.refused import Refused
from subluminal.adapters.in_process.guarding.reports import Reports
from subluminal.adapters.in_process.guarding.steps import Pause, Start, Started, Steps
from subluminal.adapters.in_process.guarding.waiting import (
    LOOK_S,
    After,
    Deadlines,
    WaitOptions,
    Waits,
    ended_by_others,
)
from subluminal.contracts.vocabulary import ReasonCode
from subluminal.core.controls.approval_files import Request
from subluminal.core.controls.approvals import pending
from subluminal.core.host import Host
from subluminal.errors import SubluminalError
from subluminal.sdk.answers import HomeAnswers
from subluminal.spm.types import (
    AgentActionRequest,
    Decision,
    DecisionOutcome,
    EventOutcome,
    Reason,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subluminal.spm.checking import Check

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


class Answering(NamedTuple):
    """The callbacks of a program that answer, and how long they are waited for."""

    callbacks: dict[DecisionOutcome, Ask | None]
    timeout_ms: int
    reports: Reports
    asking: dict[tuple[int, str], object]
    """which call asks about an approval: one, however many wait for it"""


class Questions(Waits):
    """What the call of one check waits for."""

    def __init__(self, check: "Check", answering: Answering) -> None:
        timeout_ms = answering.timeout_ms
        options = WaitOptions(approval_timeout_ms=timeout_ms, answers=HomeAnswers())
        super().__init__(options, answering.reports)
        self._asking = answering.asking
        self._check, self._answering = check, answering
        self._open: _Question | None = None

    def after(self, call: GuardedCall, refused: Refused, until: Deadlines) -> Steps[After]:
        """Asks the callback for what is required. Raises Refused if the answer is no."""
        decision, plugin = self._check.asked_for(refused)
        callback = self._answering.callbacks.get(decision.outcome)
        request = None if plugin is not None else self._pending(call)
        if callback is None or (plugin is None and request is None):
            return After.GIVE_UP
        yield from self._check.tell(decision, decision.outcome, plugin)
        self._open = question = _Question(self._check, decision, callback, call.host, request)
        deadline_s = time.monotonic() + self._answering.timeout_ms / 1000
        if request is not None:
            after = yield from self.answered(call, refused, request, deadline_s)
        else:
            after = yield from _alone(call, refused, question, deadline_s)
        answer = question.late(self._answering) if after is After.TIMEOUT else question.answer
        if answer is not None:
            yield from self._check.answered(decision, answer, plugin)
            if not answer.is_yes:
                raise call.refuse_for(answer.recorded, answer.reason.message, refused)
        return after

    def question(self, _call: GuardedCall, _request: Request) -> Question | None:
        """Returns the question to the callback."""
        return self._open

    def _pending(self, call: GuardedCall) -> Request | None:
        """Returns the approval that a refused call waits for, if a program may answer."""
        places = call.host.places
        request = pending(places, call.ruling)
        if request is None or not is_left_to_program(request, places.state):
            return None
        return request


class _Question(Question):
    """One question to a callback: about an approval, or about what a plugin requires."""

    def __init__(
        self,
        check: "Check",
        decision: Decision,
        callback: Ask,
        host: Host,
        request: Request | None,
    ) -> None:
        self._host, self._reports, self._answers = host, check.reports, HomeAnswers()
        self._request = request
        self._about, self._ask = (check.request, decision), callback
        self._codes = CODES[decision.outcome]
        self._wants_ticket = decision.outcome == "REQUIRE_TICKET"
        self.is_over = self.is_refused = False
        self.answer: Answer | None = None

    def start(self, _refused: Refused) -> Start:
        """Returns the step that asks the callback."""
        return Start(self._ask, self._about, self._settle)

    def late(self, answering: Answering) -> Answer:
        """Returns the answer of a callback that gave none."""
        message = f"{self._codes.callback} did not answer within {answering.timeout_ms} ms"
        return Answer("TIMEOUT", Reason(self._codes.timeout, message))

    def _settle(self, value: Any, error: BaseException | None) -> None:
        if self.is_over:
            return
        try:
            if error is not None:
                raise error
            answer = self._read(value)
            if answer.is_yes and self._request is not None:
                self._grant(self._request, answer)
        except BaseException as failure:  # noqa: BLE001 - nobody has agreed
            self._reports.tell(failure, self._codes.callback)
            answer = self._failed(failure)
        self.answer, self.is_refused = answer, not answer.is_yes

    def _read(self, value: Any) -> Answer:
        codes = self._codes
        if self._wants_ticket:
            ticket = value.strip() if isinstance(value, str) else ""
            if ticket:
                return Answer("APPROVED", Reason(codes.yes, f"ticket {ticket}"), ticket)
            return Answer("REJECTED", Reason(codes.no, f"{codes.callback} named no ticket"))
        if value is True:
            return Answer("APPROVED", Reason(codes.yes, f"{codes.callback} agreed"))
        return Answer("REJECTED", Reason(codes.no, f"{codes.callback} did not agree"))

    def _failed(self, failure: BaseException) -> Answer:
        """Returns the answer of a callback that failed, or named a ticket that is not accepted."""
        # The words of other errors may contain anything.
        is_ours = isinstance(failure, SubluminalError)
        said = str(failure) if is_ours else f"{self._codes.callback} failed"
        message = said if is_ours else f"{said}: {type(failure).__name__}"
        return Answer("REJECTED", Reason(self._codes.failure, message))

    def _grant(self, request: Request, answer: Answer) -> None:
        approval = request.approval
        if self._answers.is_open(self._host, approval.approval_id):
            self._answers.approve(
                self._host,
                approval.approval_id,
                reason=f"{self._codes.callback} of the program agreed",
                ticket=answer.ticket,
                met=approval.requirement,
            )


def _alone(
    call: GuardedCall, refused: Refused, question: _Question, deadline_s: float
) -> Steps[After]:
    """Waits for the answer to a question that only the callback can answer."""
    started: Started = yield question.start(refused)
    try:
        while question.answer is None:
            ended = ended_by_others(call)
            if ended is not None:
                return ended
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return After.TIMEOUT
            yield Pause(min(left_s, LOOK_S))
        return After.RETRY
    finally:
        question.is_over = True
        started.cancel()
