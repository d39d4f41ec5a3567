"""What an agent holds: decides intents by its pack and the policies, and executes what they allow.

Every intent is a call of the run, with the same journal, stops, budgets and approvals as the calls
of a shim. The order is fixed: the pack decides and the intent is claimed; the decision and the
audit record are journalled; only then does the handler run. After a kill at any point, a retry
either runs the intent or is told that its outcome is unknown.
"""

import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any

import msgspec
from msgspec import Struct

from subluminal.adapters.in_process.attempts import Intent, Judged, Judging, args_of, call_of
from subluminal.adapters.in_process.executions.keeping import ExecutionsUnavailable
from subluminal.adapters.in_process.rollout import Legacy
from subluminal.canonical import AmbiguousJSON, args_hash
from subluminal.contracts.call import ToolCall
from subluminal.contracts.decision import Decision, Hint
from subluminal.contracts.events import AuditRecorded, CallRef
from subluminal.contracts.vocabulary import (
    Action,
    ErrorClass,
    ReasonCode,
    Status,
    Taint,
    Transport,
)
from subluminal.core.gates import blocked
from subluminal.core.host import Host
from subluminal.core.intents.audits import recordable_audit
from subluminal.core.intents.packs import LoadedPack
from subluminal.core.outcomes import given_up, refused
from subluminal.core.refusal_text import message_of
from subluminal.core.ruling import Outcome, Ruling
from subluminal.errors import NotExecuted, SubluminalError
from subluminal.kernel.audit import AuditRecord
from subluminal.kernel.decisions import Decision as Verdict
from subluminal.kernel.decisions import DecisionKind
from subluminal.kernel.envelope import IntentEnvelope
from subluminal.kernel.executions import ExecutionLedger, ExecutionStatus, LedgerEntry
from subluminal.kernel.planning import Plan

Handler = Callable[[IntentEnvelope], Any]

_DECIDED_ONLY = b'"decided, not executed"'


class Done(Struct, frozen=True, kw_only=True):
    """What became of an intent."""

    action: Action
    """what the pack and the policies together say, as every door says it"""
    reason_code: str
    """code of the reason"""
    message: str
    """words for the model: why it was refused, or what the pack changed; empty if it ran as is"""
    hint: Hint | None
    """what the agent can do instead, with suggested arguments if there are any"""
    decision: Verdict | None
    """the pack's own decision; None if it was not asked"""
    record: AuditRecord | None
    """the kernel's record of that decision"""
    ledger_hit: LedgerEntry | None
    """the execution that had this intent before"""
    result: Any
    """what the handler returned"""
    call_id: str
    """id of the call in the record"""

    @property
    def executed(self) -> bool:
        """Whether the intent was allowed."""
        return self.action is Action.ALLOW


class KernelDoor:
    """One pack in one run. Several threads may use it; a forked child may go on with it."""

    def __init__(
        self,
        host: Host,
        loaded: LoadedPack,
        judging: Judging,
        executions: ExecutionLedger | None,
        close: Callable[[], None],
    ) -> None:
        self._host = host
        self._pack = loaded.pack
        self._judging = judging
        self._executions = executions
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
            legacy=legacy, deadline_ms=deadline_ms, plan=plan, claims=True
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
            legacy=legacy, deadline_ms=deadline_ms, plan=plan
        )
        ruling, judged = self._begin(intent)
        if not ruling.is_allowed:
            return self._refused(ruling, judged)
        self._host.finish(ruling, Outcome(Status.OK, len(_DECIDED_ONLY), _DECIDED_ONLY))
        return _done(ruling.decision, ruling, judged)

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
        if inspect.iscoroutinefunction(handler):
            raise SubluminalError(
                f"the handler of `{kind}` is a coroutine function",
                hint="give a function that runs it to its end",
            )
        return handler

    def _begin(self, intent: Intent) -> tuple[Ruling, Judged | None]:
        """Decides and journals an intent; it is claimed if it is to execute."""
        try:
            envelope = self._judging.envelope(intent, self._host.taint())
        except AmbiguousJSON as error:
            call = _unreadable(self._pack.id, intent.kind)
            reason = ReasonCode.AMBIGUOUS_MESSAGE
            summary = f"the payload has no canonical form: {error}"
            return self._host.refuse(call, reason, summary), None
        try:
            judged = self._judging.judge(intent, envelope)
        except ExecutionsUnavailable as error:
            return self._out_of_reach(envelope, error), None
        try:
            call, args_text = call_of(self._pack.id, envelope, judged)
            ruling = self._host.begin(call, args_text)
            if ruling.is_allowed and not self._audit(ruling, judged, intent.state):
                return self._unrecorded(ruling, judged), judged
        except BaseException:
            self._judging.release(judged)
            raise
        if not ruling.is_allowed:
            self._audit(ruling, judged, intent.state)
            self._judging.release(judged)
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
        self._judging.release(judged)
        summary = "the audit record could not be journalled, so nothing was executed"
        ruling.assessment = ruling.enforcer.engine.refusal(
            blocked(ReasonCode.JOURNAL_UNAVAILABLE, summary)
        )
        return ruling

    def _out_of_reach(self, envelope: IntentEnvelope, error: SubluminalError) -> Ruling:
        call = _unreadable(self._pack.id, envelope.kind)
        return self._host.refuse(call, ReasonCode.EXECUTIONS_UNAVAILABLE, str(error))

    def _run(self, ruling: Ruling, judged: Judged | None, handler: Handler) -> Done:
        assert judged is not None  # only a judged intent is allowed
        try:
            result = _ran(handler, judged.envelope)
        except NotExecuted as error:
            self._judging.release(judged)
            self._host.finish(ruling, given_up(Status.CANCELLED, _said(error)))
            raise
        except BaseException as error:
            self._settle(judged, ExecutionStatus.UNKNOWN)
            failed = given_up(Status.ERROR, _said(error), ErrorClass.UPSTREAM_ERROR)
            self._host.finish(ruling, failed)
            raise
        self._settle(judged, ExecutionStatus.DONE)
        text = _shown(result)
        executed = args_hash(args_of(judged.envelope))
        changed = None if executed == ruling.call.args_hash else executed
        self._host.finish(ruling, Outcome(Status.OK, len(text), text, executed_args_hash=changed))
        return _done(ruling.decision, ruling, judged, result)

    def _settle(self, judged: Judged, status: ExecutionStatus) -> None:
        """Says in the execution ledger how an intent ended.

        If that fails, the entry stays claimed, and is unknown once this process is gone: a retry
        is told so, and does not run.
        """
        if self._executions is None or judged.claimed is None:
            return
        try:
            self._executions.finish(judged.claimed, status)
        except SubluminalError as error:
            detail = f"an execution that is {status} could not be told so: {error}"
            self._host.health("degraded", detail=detail)

    def _refused(self, ruling: Ruling, judged: Judged | None) -> Done:
        done = _done(ruling.decision, ruling, judged)
        size = len(done.message.encode())
        self._host.finish(ruling, refused(ruling.decision.summary, size, done.action))
        return done


def _ran(handler: Handler, envelope: IntentEnvelope) -> Any:
    """Returns what a handler returned; something to await is an error: nobody would await it."""
    result = handler(envelope)
    if not inspect.isawaitable(result):
        return result
    if inspect.iscoroutine(result):
        result.close()
    raise SubluminalError(
        f"the handler of `{envelope.kind}` returned something to await, so it did not end",
        hint="give a function that runs it to its end",
    )


def _intent(
    kind: str, payload: Any, state: Any, nonce: str, principal: str, taint: Taint | str | None
) -> Intent:
    level = None if taint is None else Taint(taint)
    return Intent(kind, payload, state, nonce, principal, level, None, None, None, False)


def _unreadable(pack_id: str, kind: str) -> ToolCall:
    """Returns the call of an intent whose payload is not on record."""
    return ToolCall(
        server_name=pack_id,
        tool_name=kind if isinstance(kind, str) else "",
        args=None,
        args_hash=args_hash({}),
        bytes_in=0,
        transport=Transport.IN_PROCESS,
    )


def _done(decision: Decision, ruling: Ruling, judged: Judged | None, result: Any = None) -> Done:
    is_allowed = decision.action is Action.ALLOW
    return Done(
        action=decision.action,
        reason_code=decision.reason_code,
        message=_changed(judged) if is_allowed else message_of(decision, ruling.call.args),
        hint=decision.hint,
        decision=None if judged is None else judged.decision,
        record=None if judged is None or not judged.records else judged.records[-1],
        ledger_hit=None if judged is None else judged.ledger_hit,
        result=result,
        call_id=ruling.call_id,
    )


def _changed(judged: Judged | None) -> str:
    """Returns what the pack changed about an intent that executes; empty if nothing."""
    first = judged.records[0].decision if judged is not None and judged.records else {}
    if first.get("kind") != DecisionKind.REWRITE:
        return ""
    return f"Executed with changed arguments: {first.get('reason')}."


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _shown(result: Any) -> bytes:
    """Returns a result as JSON for its preview; of one that has no such form, its type."""
    try:
        return msgspec.json.encode(result)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return msgspec.json.encode(f"a value of type {type(result).__name__}")
