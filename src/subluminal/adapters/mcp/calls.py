"""The tool calls of one MCP server: decides a client's message, and ends a call at its reply.

Asks the host, and keeps the calls that are pending. It knows no transport: messages come in and go
out without framing. The caller forwards messages to the server. Messages to the client are handed
to `answer`, one at a time; it returns the number of bytes that it sent.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from subluminal.adapters.mcp import outcomes
from subluminal.adapters.mcp.messages import (
    READS,
    TOOLS_CALL,
    Ambiguous,
    Batch,
    CallMessage,
    Cancellation,
    Message,
    id_key,
)
from subluminal.adapters.mcp.pending import Pending, PendingCalls
from subluminal.adapters.mcp.render import RefusedCall, Renderer
from subluminal.adapters.mcp.replies import Reply
from subluminal.canonical import new_hash
from subluminal.contracts.call import ToolCall
from subluminal.contracts.decision import Decision
from subluminal.contracts.vocabulary import ErrorClass, ReasonCode, Status, Transport
from subluminal.core.gates import NOT_EXECUTED
from subluminal.core.host import Host
from subluminal.core.ruling import CallEnding, Ruling
from subluminal.policy.refusing import blocked

if TYPE_CHECKING:
    from subluminal.adapters.mcp.large import LargeMessage

_UNKNOWN_TOOL = "?"
"""The tool name in the record of a message that cannot be read with certainty."""


class Calls:
    """Decides messages and matches replies for one server."""

    def __init__(
        self,
        server_name: str,
        host: Host,
        renderer: Renderer,
        answer: Callable[[bytes], int],
        *,
        transport: Transport,
        call_timeout_ms: int | None = None,
    ) -> None:
        self._server_name = server_name
        self._host = host
        self._renderer = renderer
        self._answer = answer
        self._transport = transport
        self._timeout_ns = (call_timeout_ms or 0) * 1_000_000
        self._pending = PendingCalls()
        self._ended: deque[tuple[Ruling, Reply, int]] = deque()
        self.names_runs = False
        """whether the client names the run in its calls, as Codex does (shared-runs)"""
        self.halted = ""
        """why the server was stopped, or empty; while it is set, no call is forwarded"""
        self.unreachable = ""
        """why the server can no longer be written to, or empty; then no call is forwarded"""
        self.unrecorded = 0
        """number of ends of calls that are not yet in the journal's file; `record` writes them"""

    def adopt(self, renderer: Renderer, call_timeout_ms: int | None) -> None:
        """Puts new settings into force; calls that are under way keep their deadline."""
        self._renderer = renderer
        self._timeout_ns = (call_timeout_ms or 0) * 1_000_000

    @property
    def open(self) -> int:
        """How many forwarded calls have no answer yet."""
        return self._pending.open

    # From the client

    def decide(self, message: Message, size: int) -> bool:
        """Decides one message of `size` bytes; returns True if it is to be forwarded."""
        if type(message) is CallMessage:
            return self._decide_call(message, size)
        if isinstance(message, Cancellation):
            self._cancel(message)
            return True
        if isinstance(message, Batch):
            return self._decide_batch(message, size)
        if isinstance(message, Ambiguous):
            return self.decide_ambiguous(message, size)
        return True

    def read_text(self, method: str, meta: dict[str, Any]) -> str:
        """Lowers the run, if a rule says so, before a resource or a prompt is asked for.

        Returns why it must not be asked for, in one sentence; empty if it may.
        """
        return self._host.read_from(self._server_name, method, self._session(meta))

    def _may_read(self, method: str, meta: dict[str, Any], ids: list[Any], size: int) -> bool:
        """Lowers the run as `read_text` does; refuses the whole message if it must not go on."""
        why = self.read_text(method, meta)
        if why:
            self.refuse_unhandled(ids, size, why)
        return not why

    def _decide_call(self, message: CallMessage, size: int) -> bool:
        call = self._tool_call(message, size)
        session = self._session(message.meta)
        if message.request_state is not None:
            pending = self._continued(message, call, session)
            if pending is not None:
                return self._decide_round(message.id, pending, size, message.args_text)
        return self._act_on(self._begin(call, message.args_text, session), message.id)

    def _session(self, meta: dict[str, Any]) -> str | None:
        """Returns the run that a call itself names, which is Codex' session id, or None."""
        if not meta or not self.names_runs:
            return None
        turn = meta.get("x-codex-turn-metadata")
        session = turn.get("session_id") if isinstance(turn, dict) else None
        return session if isinstance(session, str) and session else None

    def _begin(self, call: ToolCall, args_text: bytes | None, session: str | None) -> Ruling:
        if self.halted:
            return self._host.refuse(call, ReasonCode.KILL_SWITCH, self.halted, session)
        if self.unreachable:
            reason = ReasonCode.SERVER_UNREACHABLE
            return self._host.refuse(call, reason, self.unreachable, session)
        return self._host.begin(call, args_text, session)

    def _act_on(self, ruling: Ruling, request_id: Any) -> bool:
        if ruling.is_allowed:
            self._wait_for(request_id, ruling)
            return True
        self._refuse(request_id, ruling)
        return False

    def decide_large(self, message: "LargeMessage", size: int) -> bool:
        """Decides a message that is too large to inspect: only its outer levels were read."""
        ids = [] if message.id is UNSET else [message.id]
        if message.is_lost:
            return self._refuse_lost(message, ids, size)
        if message.problem:
            return self.decide_ambiguous(Ambiguous(message.problem, ids), size)
        if message.method != TOOLS_CALL:
            is_read = message.method in READS
            return not is_read or self._may_read(message.method, message.meta, ids, size)
        if not isinstance(message.name, str):
            return self.decide_ambiguous(Ambiguous("a tools/call does not name a tool", ids), size)
        call = ToolCall(
            server_name=self._server_name,
            tool_name=message.name,
            args=None,
            args_hash=message.args_hash,
            bytes_in=size,
            transport=self._transport,
            context={**_context(message.meta), "args_stream_hash": message.args_hash},
        )
        session = self._session(message.meta)
        pending = self._continued(message, call, session)
        if pending is not None:
            return self._decide_round(message.id, pending, size, None)
        return self._act_on(self._begin(call, None, session), message.id)

    def decide_ambiguous(self, message: Ambiguous, size: int) -> bool:
        """Applies `decision_on_error` to a message that two parsers may read differently."""
        call = self._unknown_call(size)
        if self.halted or self.unreachable:
            ruling = self._begin(call, None, None)
        else:
            summary = f"the message can be read in more than one way: {message.why}"
            ruling = self._host.begin_undecidable(call, ReasonCode.AMBIGUOUS_MESSAGE, summary)
        if ruling.is_allowed:
            # Nobody can tell which reply, if any, will be about this message.
            self._finish(ruling, outcomes.FORWARDED)
            return True
        self._answer_all(message.ids, ruling)
        return False

    def _refuse_lost(self, message: "LargeMessage", ids: list[Any], size: int) -> bool:
        """Refuses a message that could not be stored, in every mode, and answers it."""
        summary = f"the message cannot be forwarded: {message.problem}"
        ruling = self._host.refuse(self._unknown_call(size), ReasonCode.EVALUATION_ERROR, summary)
        self._answer_all(ids, ruling)
        return False

    def _answer_all(self, ids: list[Any], ruling: Ruling) -> None:
        # JSON-RPC 2.0, section 5: if the id cannot be determined, it is null.
        self._end_refused(ruling, [self._error(each, ruling) for each in ids or [None]])

    def _unknown_call(self, size: int) -> ToolCall:
        return ToolCall(
            server_name=self._server_name,
            tool_name=_UNKNOWN_TOOL,
            args={},
            args_hash=sha256(b"{}").hexdigest(),
            bytes_in=size,
            transport=self._transport,
        )

    def _decide_batch(self, batch: Batch, size: int) -> bool:
        """Decides a batch: it is forwarded whole, or every id in it is answered."""
        sessions = {self._session(message.meta) for message in batch.calls}
        if len(sessions) > 1 and not self._host.run_is_fixed:
            why = "its calls belong to different runs"
            return self.decide_ambiguous(Ambiguous(why, batch.ids), size)
        if not all(self._may_read(each.method, each.meta, batch.ids, size) for each in batch.reads):
            return False
        rulings = self._begin_batch(batch, size, next(iter(sessions), None))
        if all(ruling.is_allowed for ruling in rulings):
            for message, ruling in zip(batch.calls, rulings, strict=True):
                self._wait_for(message.id, ruling)
            for cancellation in batch.cancellations:
                self._cancel(cancellation)
            return True
        self._refuse_batch(batch, rulings)
        return False

    def _begin_batch(self, batch: Batch, size: int, session: str | None) -> list[Ruling]:
        calls = [self._tool_call(message, size) for message in batch.calls]
        texts = [message.args_text for message in batch.calls]
        if not calls:
            return []
        if self.halted or self.unreachable:
            return [self._begin(call, None, session) for call in calls]
        return self._host.begin_batch(list(zip(calls, texts, strict=True)), session)

    def _refuse_batch(self, batch: Batch, rulings: list[Ruling]) -> None:
        """Answers every id of a batch in which a call was refused."""
        refused = next(each for each in rulings if not _passed_alone(each))
        errors: dict[tuple[bool, Any], bytes] = {
            # A request that is not a tool call is answered with the call because of which it is
            # not executed.
            id_key(each): self._error(each, refused, NOT_EXECUTED)
            for each in batch.ids
        }
        for message, ruling in zip(batch.calls, rulings, strict=True):
            said, refusal = ruling.decision, b""
            if message.id is not UNSET:
                refusal = errors[id_key(message.id)] = self._error(message.id, ruling, said)
            status = Status.CANCELLED if _passed_alone(ruling) else Status.ERROR
            self._finish(ruling, outcomes.refused(said.summary, len(refusal), said.action, status))
        if errors:
            self._answer(b"[" + b",".join(errors.values()) + b"]")

    def _tool_call(self, message: CallMessage, size: int) -> ToolCall:
        digest = new_hash()
        digest.update(message.args_text)
        return ToolCall(
            server_name=self._server_name,
            tool_name=message.name,
            args=message.args,
            args_hash=digest.hexdigest(),
            bytes_in=size,
            transport=self._transport,
            context=_context(message.meta) if message.meta else {},
        )

    def _refuse(self, request_id: Any, ruling: Ruling) -> None:
        self._end_refused(ruling, [] if request_id is UNSET else [self._error(request_id, ruling)])

    def _end_refused(self, ruling: Ruling, errors: Sequence[bytes]) -> None:
        size = sum(self._answer(error) for error in errors)
        decision = ruling.decision
        self._finish(ruling, outcomes.refused(decision.summary, size, decision.action))

    def _error(self, request_id: Any, ruling: Ruling, said: Decision | None = None) -> bytes:
        """Returns the error to a refused call; `said` is the reason if it is not the ruling's."""
        call = ruling.call
        refused = RefusedCall(
            *(ruling.run_id, ruling.call_id, call.server_name, ruling.tool_name),
            *(call.args_hash, ruling.policy, call.args),
        )
        return self._renderer.error(request_id, said or ruling.decision, refused)

    def _wait_for(self, request_id: Any, ruling: Ruling) -> None:
        if request_id is UNSET:
            # A notification has no reply, so all that can be recorded is that it was forwarded.
            self._finish(ruling, outcomes.FORWARDED)
            return
        # Not from `started_ns`: a call that was taken over may have waited for a person before.
        deadline = time.monotonic_ns() + self._timeout_ns if self._timeout_ns else 0
        self._pending.ask(request_id, Pending(ruling, deadline))

    def _continued(
        self, message: "CallMessage | LargeMessage", call: ToolCall, session: str | None
    ) -> Pending | None:
        """Returns the call that a message continues, because its server asked for input; or None.

        A call that is on record as ended is not continued (every-mcp-era).
        """
        state = message.request_state
        if state is None or message.id is UNSET or self.halted or self.unreachable:
            return None
        pending = self._pending.next_round(self._host.run_of(session), call, state)
        return None if pending is None or pending.ruling.finished else pending

    def _decide_round(
        self, request_id: Any, pending: Pending, size: int, args_text: bytes | None
    ) -> bool:
        """Decides a further round of a call; returns True if it is to be forwarded."""
        pending.rounds += 1
        if not self._host.begin_round(pending.ruling, pending.rounds, size, args_text):
            self._refuse(request_id, pending.ruling)
            return False
        # The time that a person took to answer is not the server's.
        pending.deadline_ns = time.monotonic_ns() + self._timeout_ns if self._timeout_ns else 0
        self._pending.ask(request_id, pending)
        return True

    def _cancel(self, message: Cancellation) -> None:
        status = Status.TIMEOUT if message.is_timeout else Status.CANCELLED
        for pending in self._pending.cancelled(message.request_id):
            self._end(pending, outcomes.given_up(status, "the client cancelled the call"))

    # From the server

    def replied(self, reply: Reply) -> None:
        """Ends the pending call that a reply answers, if there is one."""
        pending = self._pending.answered(reply.id)
        if pending is None:
            return
        if reply.request_state is not None:
            given_up = self._pending.await_round(pending, reply.request_state)
            if given_up is not None:
                why = "the client did not continue the call"
                self._end(given_up, outcomes.given_up(Status.CANCELLED, why))
            return
        at_ns, ruling = time.monotonic_ns(), pending.ruling
        if reply.is_error or ruling.assessment.is_watched:
            # The next call's decision depends on this end.
            self._host.finish(ruling, outcomes.answered(reply), at_ns)
        self._ended.append((ruling, reply, at_ns))
        self.unrecorded += 1

    def record(self, at_most: int | None) -> None:
        """Records up to `at_most` calls that have ended, oldest first; None for all of them."""
        for _ in range(len(self._ended) if at_most is None else at_most):
            if not self._ended:
                break
            ruling, reply, at_ns = self._ended.popleft()
            self._host.finish(ruling, outcomes.answered(reply), at_ns)
        self.unrecorded = len(self._ended)
        self._host.flush()

    def _finish(self, ruling: Ruling, outcome: CallEnding) -> None:
        """Ends a call; the transport's loop writes the end to disk when it is idle."""
        self._host.finish(ruling, outcome)
        self.unrecorded += 1

    def _end(self, pending: Pending, outcome: CallEnding) -> None:
        self._finish(pending.ruling, outcome)

    def time_out(self) -> None:
        """Records calls that take longer than `call_timeout_ms` as TIMEOUT, and lets them go on."""
        if not self._timeout_ns or not self.open:
            return
        now_ns = time.monotonic_ns()
        for pending in self._pending.asked():
            # A call without a deadline began before a timeout was set.
            if 0 < pending.deadline_ns <= now_ns and not pending.ruling.finished:
                self._end(pending, outcomes.TIMED_OUT)

    def refuse_pending(self, why: str) -> None:
        """Ends and answers every pending call, because the server was stopped."""
        said = blocked(ReasonCode.KILL_SWITCH, why)
        errors = [
            self._error(request_id, pending.ruling, said)
            for request_id, pending in self._pending.with_ids()
        ]
        self.end_all(Status.ERROR, why, ErrorClass.POLICY_BLOCK)
        for error in errors:
            self._answer(error)

    def refuse_undelivered(self, ids: list[Any], why: str) -> None:
        """Ends and answers calls that were to be forwarded, and could not be written."""
        said = blocked(ReasonCode.SERVER_UNREACHABLE, why)
        for request_id in ids:
            for pending in self._pending.cancelled(request_id):
                error = self._error(request_id, pending.ruling, said)
                outcome = outcomes.given_up(Status.ERROR, why, ErrorClass.TRANSPORT)
                self._answer(error)
                self._end(pending, outcome)

    def refuse_unhandled(self, ids: list[Any], size: int, why: str) -> None:
        """Records, refuses and answers a message that could not be decided."""
        call = self._unknown_call(size)
        self._answer_all(ids, self._host.refuse(call, ReasonCode.EVALUATION_ERROR, why))

    def end_all(self, status: Status, message: str, error_class: ErrorClass) -> None:
        """Ends every pending call, because the server or the client is gone."""
        for pending in self._pending.clear():
            self._end(pending, outcomes.given_up(status, message, error_class))


def _passed_alone(ruling: Ruling) -> bool:
    """Returns True if a call of a refused batch would have been forwarded by itself."""
    return ruling.decision.reason_code == ReasonCode.BATCH_REFUSED


def _context(meta: dict[str, Any]) -> dict[str, str]:
    """Returns the client's call id and the traceparent that a call carries, for the record."""
    context: dict[str, str] = {}
    for key in ("claudecode/toolUseId", "callId", "subluminal/toolUseId"):
        if isinstance(meta.get(key), str):
            context["client_call_id"] = meta[key]
    if isinstance(meta.get("traceparent"), str):
        context["traceparent"] = meta["traceparent"]
    return context
