"""Asks a function of the program whether a refused call may pass, and writes its answer down.

The answer becomes what `sub approve` or `sub deny` would have written. The call that waits finds it
where it finds theirs.
"""

from collections.abc import Callable
from typing import Any, Protocol

from subluminal.adapters.in_process.guarding.refused import Refused
from subluminal.adapters.in_process.guarding.reports import Reports
from subluminal.adapters.in_process.guarding.steps import Start
from subluminal.adapters.in_process.results import said_by
from subluminal.contracts.vocabulary import Layer, Requirement
from subluminal.core.controls import passphrase
from subluminal.core.controls.approval_files import Request
from subluminal.core.host import Host

Callback = Callable[[Refused], Any]
"""Says whether a call may pass: True, False, or None if it leaves that to a person. If the rule
requires a ticket, its text in place of True. May be a coroutine function."""

WHERE = "approvals"
_YES = "a callback of the program approved it"
_NO = "a callback of the program said no"


class Answers(Protocol):
    """Writes answers, as `sub approve` and `sub deny` do."""

    def is_open(self, host: Host, approval_id: str) -> bool:
        """Whether nobody has answered yet."""

    def approve(
        self,
        host: Host,
        approval_id: str,
        *,
        reason: str,
        ticket: str | None,
        met: Requirement | None,
    ) -> None:
        """Lets one try of the call pass. Raises SubluminalError."""

    def deny(self, host: Host, approval_id: str, *, reason: str) -> None:
        """Refuses further tries of the call. Raises SubluminalError."""


def is_left_to_program(request: Request, state_dir: str) -> bool:
    """Whether a program may answer a request itself.

    The managed policy is not the program's, and in a home with a passphrase only a person who knows
    it may approve.
    """
    return request.approval.layer is not Layer.MANAGED and not passphrase.is_set(state_dir)


def may_answer(request: Request, state_dir: str) -> bool:
    """Whether a callback may answer a request; a step-up takes the passphrase at a terminal."""
    is_step_up = request.approval.requirement is Requirement.STEP_UP
    return not is_step_up and is_left_to_program(request, state_dir)


class Question:
    """One question to the callback."""

    def __init__(
        self,
        host: Host,
        request: Request,
        answers: Answers,
        reports: Reports,
        callback: Callback,
    ) -> None:
        self._host = host
        self._approval = request.approval
        self._callback = callback
        self._answers = answers
        self._reports = reports
        self.is_over = False
        """whether nobody waits for the answer any more"""
        self.is_refused = False
        """whether the answer refuses this try of the call, and is written down nowhere"""

    def start(self, refused: Refused) -> Start:
        """Returns the step that asks the callback."""
        return Start(self._callback, (refused,), self._settle)

    def _settle(self, value: Any, error: BaseException | None) -> None:
        try:
            if error is not None:
                raise error
            self._answer(value)
        except BaseException as failure:  # noqa: BLE001 - what the callback raised, or its ticket
            self._reports.tell(failure, WHERE)
            self._deny_for(failure)

    def _answer(self, value: Any) -> None:
        if value is None or not self._is_open():
            return
        approval, is_ticket = self._approval, self._approval.requirement is Requirement.TICKET
        if value is False:
            self._answers.deny(self._host, approval.approval_id, reason=_NO)
        elif value is True or (is_ticket and isinstance(value, str)):
            self._answers.approve(
                self._host,
                approval.approval_id,
                reason=_YES,
                ticket=value if isinstance(value, str) else None,
                met=approval.requirement,
            )
        else:
            wanted = "a ticket's text, False or None" if is_ticket else "True, False or None"
            raise TypeError(f"the callback returned a {type(value).__name__}, not {wanted}")

    def _deny_for(self, failure: BaseException) -> None:
        try:
            if self._is_open():
                said = self._host.previewer.sentence(said_by(failure))
                reason = f"a callback of the program failed: {said}"
                self._answers.deny(self._host, self._approval.approval_id, reason=reason)
        except Exception as error:  # noqa: BLE001 - the call stays refused
            self._reports.tell(error, WHERE)

    def _is_open(self) -> bool:
        return not self.is_over and self._answers.is_open(self._host, self._approval.approval_id)
