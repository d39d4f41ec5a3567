"""What an agent holds: decides intents by its pack and the policies, and executes what they allow.

Every intent is a call of the run, with the same journal, stops, budgets and approvals as the calls
of a shim. The order is fixed: the pack decides and the intent is claimed; the decision and the
audit record are journalled; only then does the handler run. After a kill at any point, a retry
either runs the intent or is told that its outcome is unknown.
"""

import inspect
from collections.abc import Callable
from math import isnan, nan
from types import TracebackType
from typing import Any

from subluminal.adapters.in_process.attempts import Intent, Judged, Judging, call_of
from subluminal.adapters.in_process.results import Done, changes_of, finished, said_by, shown
from subluminal.adapters.in_process.rollout import Legacy
from subluminal.canonical import AmbiguousJSON, args_hash
from subluminal.contracts.call import BUILT_IN, ToolCall
from subluminal.contracts.events import AuditRecorded, CallRef
from subluminal.contracts.vocabulary import (
    Action,
    ErrorClass,
    ReasonCode,
    Status,
    Taint,
    Transport,
)
from subluminal.core.host import Host
from subluminal.core.intents.audits import recordable_audit
from subluminal.core.intents.packs import LoadedPack
from subluminal.core.outcomes import given_up, refused
from subluminal.core.refusal_text import message_of
from subluminal.core.ruling import CallEnding, Ruling
from subluminal.errors import NotExecuted, SubluminalError
from subluminal.kernel.envelope import IntentEnvelope
from subluminal.kernel.executions import ExecutionStatus
from subluminal.kernel.planning import Plan
from subluminal.kernel.refusals import told
from subluminal.policy.refusing import blocked

Handler = Callable[[IntentEnvelope], Any]

_DECIDED_ONLY = b'"decided, not executed"'


class KernelDoor:
    """One pack in one run. Several threads may use it; a forked child may go on with it."""

    def __init__(
        self,
        host: Host,
        loaded: LoadedPack,
        judging: Judging,
        close: Callable[[], None],
    ) -> None:
        self._host = host
        self._pack = loaded.pack
        self._judging = judging
        self._close = close

    def __enter__(self) -> "KernelDoor":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the run and closes every file."""
        self._host.close()
        self._close()

    # Intents

    def execute(
        self,
        kind: str,
        payload: Any,
        *,
        state: Any,
        nonce: str,
        handler: Handler | None = None,
        principal: str = "llm",
        taint: Taint | str | None = None,
        legacy: Legacy | None = None,
        deadline_ms: float | None = None,
        plan: Plan | None = None,
    ) -> Done:
        """Decides an intent, and runs its handler if it is allowed.

        `nonce` names this intent: a retry with the same nonce does not run it twice. Without
        `handler`, the pack's own handler for the kind runs. What it raises is raised here, after it
        is on record: NotExecuted lets the intent run again; after anything else its outcome is
        unknown, until a person says `sub intent release`.
        """
        runs = self._handler(kind, handler)
        intent = _intent(kind, payload, state, nonce, principal, taint)._replace(
            legacy=legacy, deadline_ms=_deadline(deadline_ms), plan=plan, claims=True
        )
        ruling, judged = self._begin(intent)
        if not ruling.is_allowed:
            return self._refused(ruling, judged)
        return self._run(ruling, judged, runs)

    def decide(
        self,
        kind: str,
        payload: Any,
        *,
        state: Any,
        nonce: str,
        principal: str = "llm",
        taint: Taint | str | None = None,
        legacy: Legacy | None = None,
        deadline_ms: float | None = None,
        plan: Plan | None = None,
    ) -> Done:
        """Decides an intent and records the decision. Nothing is claimed, and nothing runs."""
        intent = _intent(kind, payload, state, nonce, principal, taint)._replace(
            legacy=legacy, deadline_ms=_deadline(deadline_ms), plan=plan
        )
        ruling, judged = self._begin(intent)
        if not ruling.is_allowed:
            return self._refused(ruling, judged)
        self._host.finish(ruling, CallEnding(Status.OK, len(_DECIDED_ONLY), _DECIDED_ONLY))
        return self._done(ruling, judged)

    def plan(self, state: Any, context: Any) -> Plan:
        """Returns what the model may see and propose now."""
        return self._pack.planner.plan(state, context)

    @property
    def run_id(self) -> str:
        """The run that the intents belong to."""
        return self._host.run_id

    @property
    def taint(self) -> Taint:
        """The level of the run."""
        return self._host.taint()

    def lower_taint(self, to: Taint | str, *, source: str) -> Taint:
        """Lowers the run because the agent read something; `source` names it. Returns the level.

        Call it before the text can act.
        """
        return self._host.lower_taint(Taint(to), source=source)

    # One intent

    def _handler(self, kind: str, given: Handler | None) -> Handler:
        handler = given or self._pack.handlers.get(kind)
        if handler is None:
            raise SubluminalError(
                f"there is no handler for `{kind}`", hint="give `handler`, a function"
            )
        called = getattr(type(handler), "__call__", None)  # noqa: B004 - is that one a coroutine?
        if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(called):
            raise SubluminalError(
                f"the handler of `{kind}` is a coroutine function",
                hint="give a function that runs it to its end",
            )
        return handler

    def _begin(self, intent: Intent) -> tuple[Ruling, Judged | None]:
        """Decides and journals an intent; it is claimed if it is to execute."""
        call = _unreadable(self._pack.id, intent.kind)
        if intent.kind not in self._pack.intents:
            summary = f"the pack {self._pack.id} has no intent `{call.tool_name}`"
            return self._host.refuse(call, ReasonCode.EVALUATION_ERROR, summary), None
        try:
            level = self._host.taint()
            envelope = self._judging.envelope(intent, level)
        except AmbiguousJSON as error:
            reason = ReasonCode.AMBIGUOUS_MESSAGE
            summary = f"the payload has no canonical form: {error}"
            return self._host.refuse(call, reason, summary), None
        try:
            judged = self._judging.judge(intent, envelope, level)
        except Exception as error:  # noqa: BLE001 - the ledger may be the agent's own
            return self._out_of_reach(envelope, error), None
        ruling = None
        try:
            call, args_text = call_of(self._pack.id, judged)
            ruling = self._host.begin(call, args_text)
            if ruling.is_allowed and not self._audit(ruling, judged, intent.state):
                return self._unrecorded(ruling, judged), judged
            if not ruling.is_allowed:
                self._audit(ruling, judged, intent.state)
                self._release(judged)
        except BaseException as error:
            self._release(judged)
            if ruling is not None:
                self._host.finish(ruling, given_up(Status.CANCELLED, said_by(error)))
            raise
        return ruling, judged

    def _audit(self, ruling: Ruling, judged: Judged, state: Any) -> bool:
        """Journals the audit records of a call; returns False if they could not be kept."""
        run, previewer = ruling.enforcer.run, self._host.previewer
        call = CallRef(
            call_id=ruling.call_id,
            server_name=ruling.call.server_name,
            tool_name=ruling.tool_name,
            args_hash=ruling.call.args_hash,
        )
        audits = [recordable_audit(each, state, self._pack, previewer) for each in judged.records]

        def write() -> None:
            for audit in audits:
                if audit is not None:
                    run.emit(AuditRecorded, call=call, audit=audit)

        return run.record(write)

    def _unrecorded(self, ruling: Ruling, judged: Judged) -> Ruling:
        """Refuses an intent that was allowed, but whose audit record could not be kept."""
        self._release(judged)
        summary = "the audit record could not be journalled, so nothing was executed"
        ruling.assessment = ruling.enforcer.engine.refusal(
            blocked(ReasonCode.JOURNAL_UNAVAILABLE, summary)
        )
        return ruling

    def _out_of_reach(self, envelope: IntentEnvelope, error: Exception) -> Ruling:
        call = _unreadable(self._pack.id, envelope.kind)
        said = str(error) if isinstance(error, SubluminalError) else said_by(error)
        return self._host.refuse(call, ReasonCode.EXECUTIONS_UNAVAILABLE, said)

    def _run(self, ruling: Ruling, judged: Judged | None, handler: Handler) -> Done:
        assert judged is not None  # only a judged intent is allowed
        try:
            result = finished(handler(judged.envelope))
        except NotExecuted as error:
            self._release(judged)
            self._host.finish(ruling, given_up(Status.CANCELLED, said_by(error)))
            raise
        except BaseException as error:
            self._settle(judged, ExecutionStatus.UNKNOWN)
            failed = given_up(Status.ERROR, said_by(error), ErrorClass.UPSTREAM_ERROR)
            self._host.finish(ruling, failed)
            raise
        self._settle(judged, ExecutionStatus.DONE)
        text = shown(result)
        self._host.finish(ruling, CallEnding(Status.OK, len(text), text))
        return self._done(ruling, judged, result, executed=True)

    def _settle(self, judged: Judged, status: ExecutionStatus) -> None:
        self._tell(self._judging.settle(judged, status))

    def _release(self, judged: Judged) -> None:
        self._tell(self._judging.release(judged))

    def _tell(self, problem: str | None) -> None:
        if problem is not None:
            self._host.health("degraded", detail=self._host.previewer.safe(problem))

    def _refused(self, ruling: Ruling, judged: Judged | None) -> Done:
        done = self._done(ruling, judged)
        size = len(done.message.encode())
        self._host.finish(ruling, refused(ruling.decision.summary, size, done.action))
        return done

    def _done(
        self, ruling: Ruling, judged: Judged | None, result: Any = None, *, executed: bool = False
    ) -> Done:
        decision = ruling.decision
        if decision.action is Action.ALLOW:
            message = self._host.previewer.safe(changes_of(judged, executed))
        else:
            message = message_of(decision, ruling.call.args)
        return Done(
            action=decision.action,
            reason_code=decision.reason_code,
            message=message,
            hint=decision.hint,
            decision=None if judged is None else judged.decision,
            record=None if judged is None or not judged.records else judged.records[-1],
            ledger_hit=None if judged is None else judged.ledger_hit,
            result=result,
            call_id=ruling.call_id,
            executed=executed,
        )


def _intent(
    kind: str, payload: Any, state: Any, nonce: str, principal: str, taint: Taint | str | None
) -> Intent:
    level = None if taint is None else Taint(taint)
    return Intent(kind, payload, state, nonce, principal, level, None, None, None, False)


def _deadline(given: float | None) -> float | None:
    """Returns the deadline in milliseconds. Raises SubluminalError if it is not a number."""
    try:
        deadline_ms = None if given is None else float(given)
    except (TypeError, ValueError, OverflowError):
        deadline_ms = nan
    if deadline_ms is not None and isnan(deadline_ms):
        raise SubluminalError("`deadline_ms` is not a number of milliseconds")
    return deadline_ms


def _unreadable(pack_id: str, kind: str) -> ToolCall:
    """Returns the call of an intent whose payload is not on record."""
    return ToolCall(
        server_name=pack_id,
        tool_name=told(kind),
        args=None,
        args_hash=args_hash({}),
        bytes_in=0,
        transport=Transport.IN_PROCESS,
        provider=BUILT_IN,
    )
