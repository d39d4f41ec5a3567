"""Waits for a person's answer to a refused call, or until a rate limit lets it pass.

No lock is held and no call is open meanwhile: the refusal has ended, and the retry is a call of its
own. A stop, the end of the run, the end of the guard and the end of the interpreter end a wait.
"""

import os
import time
from enum import Enum
from typing import Literal, NamedTuple

from subluminal.adapters.in_process.guarding.asking import Answers, Callback, Question, may_answer
from subluminal.adapters.in_process.guarding.calls import GuardedCall
from subluminal.adapters.in_process.guarding.refused import Refused
from subluminal.adapters.in_process.guarding.reports import Reports
from subluminal.adapters.in_process.guarding.steps import Pause, Started, Steps
from subluminal.core.controls.approval_files import ApprovalFiles, Request
from subluminal.core.controls.approvals import pending
from subluminal.core.controls.sealed import SealBroken, seal_key
from subluminal.errors import SubluminalError

OnThrottle = Literal["raise", "wait"]
Approvals = Literal["wait"] | Callback | None

MAX_THROTTLED_MS = 300_000
"""Longest wait of one call for rate limits, over all its retries."""
LOOK_S = 0.05
"""Pause between two looks for an answer or a stop."""


class After(Enum):
    """How a wait ended."""

    RETRY = "retry"
    """there is an answer, or a stop: the next try of the call tells which"""
    TIMEOUT = "timeout"
    GIVE_UP = "give up"
    """there is nothing to wait for, or nobody is left who could retry"""


class WaitOptions(NamedTuple):
    """What a guard waits for."""

    approvals: Approvals = None
    approval_timeout_ms: int = 300_000
    on_throttle: OnThrottle = "raise"
    answers: Answers | None = None


class Deadlines:
    """Until when one call waits, over all its retries."""

    def __init__(self, options: WaitOptions) -> None:
        self._options = options
        self._approval_s: float | None = None
        self.throttled_s = MAX_THROTTLED_MS / 1000
        """how much longer it may wait for rate limits"""

    def approval(self) -> float:
        """Returns the time until which it waits for answers; the first wait sets it."""
        if self._approval_s is None:
            self._approval_s = time.monotonic() + self._options.approval_timeout_ms / 1000
        return self._approval_s


class Waits:
    """What the calls of one guard wait for."""

    def __init__(self, options: WaitOptions, reports: Reports) -> None:
        self.options = options
        self._reports = reports
        self._asking: dict[tuple[int, str], object] = {}
        """who asks the callback about an approval: one call, however many wait for it"""

    def after(self, call: GuardedCall, refused: Refused, until: Deadlines) -> Steps[After]:
        """Waits as the options say about this refusal."""
        if refused.backoff_ms is not None and self.options.on_throttle == "wait":
            return (yield from self._throttled(call, refused.backoff_ms / 1000, until))
        if refused.approval_id is not None and self.options.approvals is not None:
            request = pending(call.host.places, call.ruling)
            if request is not None:
                return (yield from self.answered(call, refused, request, until.approval()))
        return After.GIVE_UP

    def _throttled(self, call: GuardedCall, backoff_s: float, until: Deadlines) -> Steps[After]:
        if backoff_s > until.throttled_s:
            return After.GIVE_UP
        until.throttled_s -= max(backoff_s, LOOK_S)
        end_s = time.monotonic() + max(backoff_s, LOOK_S)
        while (left_s := end_s - time.monotonic()) > 0:
            ended = ended_by_others(call)
            if ended is not None:
                return ended
            yield Pause(min(left_s, LOOK_S))
        return After.RETRY

    def answered(
        self, call: GuardedCall, refused: Refused, request: Request, deadline_s: float
    ) -> Steps[After]:
        """Waits for the answer to a request."""
        places, since_ms = call.host.places, time.time_ns() // 1_000_000
        files = ApprovalFiles.of_run(places.state, request.run_id, seal_key(places.state))
        question = self.question(call, request)
        started: Started | None = None
        try:
            while True:
                if _is_answered(files, request, since_ms):
                    return After.RETRY
                if question is not None and question.is_refused:
                    return After.GIVE_UP
                ended = ended_by_others(call)
                if ended is not None:
                    return ended
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    return After.TIMEOUT
                if question is not None and started is None and self._claim(request, question):
                    # Whoever asked before may have had its answer since the look above.
                    if _is_answered(files, request, since_ms):
                        return After.RETRY
                    started = yield question.start(refused)
                yield Pause(min(left_s, LOOK_S))
        finally:
            if question is not None:
                question.is_over = True
                self._release(request, question)
            if started is not None:
                started.cancel()

    def question(self, call: GuardedCall, request: Request) -> Question | None:
        """Returns the question to the callback, if there is one that may answer."""
        callback, answers = self.options.approvals, self.options.answers
        if not callable(callback) or answers is None:
            return None
        if not may_answer(request, call.host.places.state):
            return None
        return Question(call.host, request, answers, self._reports, callback)

    def _claim(self, request: Request, question: Question) -> bool:
        """Whether this question is the one that is asked about an approval."""
        key = (os.getpid(), request.approval.approval_id)  # a forked child asks for itself
        return self._asking.setdefault(key, question) is question

    def _release(self, request: Request, question: Question) -> None:
        key = (os.getpid(), request.approval.approval_id)
        if self._asking.get(key) is question:
            del self._asking[key]


def _is_answered(files: ApprovalFiles, request: Request, since_ms: int) -> bool:
    """Whether another try of the call would get another answer, or wait for another approval."""
    slot, approval_id = request.slot, request.approval.approval_id
    now = files.request(slot)
    if now is None or now.approval.approval_id != approval_id:
        return True
    try:
        answer = files.answer(slot)
        if answer is not None and answer.given.approval_id == approval_id:
            return True
        of_tool = files.answer(slot._replace(args_hash=None))  # `sub promote --session`
        return of_tool is not None and of_tool.issued_ms > since_ms
    except (SealBroken, OSError):
        return False  # as the retry would: it is not believed


def ended_by_others(call: GuardedCall) -> After | None:
    """Returns how a wait ends that nobody answers: by a stop, or because everything ends."""
    if _interpreter_ends():
        return After.GIVE_UP
    ruling = call.ruling
    try:
        return After.RETRY if call.host.is_over(ruling.call, ruling.run_id) else None
    except SubluminalError:  # the guard was closed
        return After.GIVE_UP


def _interpreter_ends() -> bool:
    """Whether the main thread has ended, and the interpreter waits for the other threads."""
    import threading

    # Pools of threads are joined while the main thread still counts as alive.
    return getattr(threading, "_SHUTTING_DOWN", False) or not threading.main_thread().is_alive()
