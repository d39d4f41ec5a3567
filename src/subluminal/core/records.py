"""The events of a call, written as they happen: start and decision, refusals, the end.

Everything a call leaves in the journal is put together here. Decides nothing.
"""

import time

from msgspec import UNSET

from subluminal.contracts.call import ToolCall
from subluminal.contracts.decision import Decision, LayeredPolicyRef, PolicyRef
from subluminal.contracts.events import (
    BreakerTrip,
    CallRef,
    DecisionMade,
    ErrorDetail,
    Explain,
    HintedCall,
    HintIssued,
)
from subluminal.contracts.templates import encode_json, names_json
from subluminal.contracts.vocabulary import Action
from subluminal.core.previews import Preview, Previewer
from subluminal.core.ruling import Outcome, Ruling
from subluminal.core.run import Run
from subluminal.core.timestamps import Timestamps
from subluminal.policy.evaluation import Evaluation

_ALLOW = Action.ALLOW
_MAX_CACHED = 512


class Records:
    """Writes the calls of one run into its journal."""

    def __init__(self, run: Run, previewer: Previewer) -> None:
        self._run = run
        self._journal = run.journal
        self._previews = previewer
        self._timestamps = Timestamps()
        self._names: dict[tuple[str, str], bytes] = {}
        self._decisions: dict[int, tuple[Decision, PolicyRef, list[LayeredPolicyRef], bytes]] = {}

    def decided(
        self,
        ruling: Ruling,
        wall_ms: int,
        seq: int,
        args_text: bytes | None,
        policies: list[LayeredPolicyRef],
    ) -> None:
        """Writes start and decision in one write(2), or raises JournalUnavailable (D5)."""
        call, journal = ruling.call, self._journal
        ts, names = self._timestamps.at(wall_ms), self._names_of(call)
        call_id, args_hash = ruling.call_id.encode(), call.args_hash.encode()
        preview = self._previews.args(args_text, call.args_hash)
        start = self._run.templates.tool_call_start(
            ts,
            journal.n,
            journal.prev,
            call_id=call_id,
            names_json=names,
            args_hash=args_hash,
            transport=call.transport.encode(),
            bytes_in=call.bytes_in,
            seq=seq,
            extra_json=b',"mono_ms":%d' % (ruling.started_ns // 1_000_000)
            + _start_extra(call, ruling.evaluation.risk_classes),
            truncated=preview.truncated,
            preview_json=preview.members_json,
        )
        journal.add_chained(start, _without(start, preview, 3))
        decision = self._run.templates.tool_call_decision(
            ts,
            journal.n,
            journal.prev,
            call_id=call_id,
            names_json=names,
            args_hash=args_hash,
            decision_json=self._decision_json(ruling.evaluation, policies),
        )
        journal.add_chained(decision, decision)
        if not ruling.is_allowed:
            self._refused(ruling)
        journal.flush()

    def ended(self, ruling: Ruling, outcome: Outcome, latency_ms: int, learnt: bytes) -> None:
        """Buffers the end of a call; the next flush writes it. `learnt` is Enforcer's member."""
        preview = self._previews.result(outcome.result)
        line = self._run.templates.tool_call_end(
            self._timestamps.at(time.time_ns() // 1_000_000),
            self._journal.n,
            self._journal.prev,
            call_id=ruling.call_id.encode(),
            names_json=self._names_of(ruling.call),
            args_hash=ruling.call.args_hash.encode(),
            status=outcome.status.encode(),
            latency_ms=latency_ms,
            bytes_out=outcome.bytes_out,
            extra_json=self._end_extra(outcome) + learnt,
            truncated=preview.truncated,
            preview_json=preview.members_json,
        )
        self._journal.add_chained(line, _without(line, preview, 2))

    def _refused(self, ruling: Ruling) -> None:
        call, decision = ruling.call, ruling.decision
        if decision.action is Action.REJECT_WITH_HINT and decision.hint is not None:
            self._run.emit(
                HintIssued,
                call=HintedCall(
                    call_id=ruling.call_id,
                    server_name=call.server_name,
                    tool_name=call.tool_name,
                ),
                hint=decision.hint,
                hint_id=f"hint-{ruling.call_id}",
                rule_id=decision.rule_id,
            )
        for trip in ruling.evaluation.trips:
            self._run.emit(
                BreakerTrip,
                call=CallRef(
                    call_id=ruling.call_id,
                    server_name=call.server_name,
                    tool_name=call.tool_name,
                    args_hash=call.args_hash,
                ),
                breaker=trip,
            )

    def _names_of(self, call: ToolCall) -> bytes:
        key = (call.server_name, call.tool_name)
        found = self._names.get(key)
        if found is None:
            if len(self._names) >= _MAX_CACHED:
                self._names.clear()
            self._names[key] = found = names_json(*key)
        return found

    def _decision_json(self, evaluation: Evaluation, policies: list[LayeredPolicyRef]) -> bytes:
        """Encodes a decision. The same object again, as most ALLOWs are, costs a look-up."""
        decision = evaluation.decision
        if decision.action is not _ALLOW or evaluation.would_be is not None or evaluation.grants:
            return encode_json(_decision_made(evaluation, policies))
        cached = self._decisions.get(id(decision))
        # Layers share decisions, and a reload may change a layer beside the one that decided.
        if (
            cached is not None
            and cached[0] is decision
            and cached[1] is evaluation.policy
            and cached[2] is policies
        ):
            return cached[3]
        encoded = encode_json(_decision_made(evaluation, policies))
        if len(self._decisions) >= _MAX_CACHED:
            self._decisions.clear()
        self._decisions[id(decision)] = (decision, evaluation.policy, policies, encoded)
        return encoded

    def _end_extra(self, outcome: Outcome) -> bytes:
        extra = b""
        if outcome.error_class is not None:
            detail = ErrorDetail(
                class_=outcome.error_class,
                message=self._previews.sentence(outcome.error_message),
                code=UNSET if outcome.error_code is None else outcome.error_code,
            )
            extra = b',"error":' + encode_json(detail)
        if outcome.result_stream_hash is not None:
            extra += b',"result_stream_hash":"%b"' % outcome.result_stream_hash.encode()
        return extra


def _decision_made(evaluation: Evaluation, policies: list[LayeredPolicyRef]) -> DecisionMade:
    decision = evaluation.decision
    would_be = evaluation.would_be
    grants = evaluation.grants
    return DecisionMade(
        action=decision.action,
        rule_id=decision.rule_id,
        severity=decision.severity,
        explain=Explain(summary=decision.summary, reason_code=decision.reason_code),
        policy=evaluation.policy,
        backoff_ms=UNSET if decision.backoff_ms is None else decision.backoff_ms,
        hint=UNSET if decision.hint is None else decision.hint,
        terminate=UNSET if decision.terminate is None else decision.terminate,
        would_be=UNSET if would_be is None else would_be,
        grant=grants[0] if grants else UNSET,
        grants=list(grants) if len(grants) > 1 else UNSET,
        policies=policies if len(policies) > 1 else UNSET,
    )


def _without(line: bytes, preview: Preview, closing: int) -> bytes:
    """The line as it is chained: without the preview's text, which is its last member (D14)."""
    dropped = len(preview.text_json)
    return line[: -dropped - closing] + line[-closing:] if dropped else line


# Members of CallStarted that an adapter may put into a call's context, in the struct's order.
_CONTEXT_MEMBERS = ("args_stream_hash", "client_call_id", "traceparent")


def _start_extra(call: ToolCall, risk_classes: frozenset[str]) -> bytes:
    if not risk_classes and not call.context:
        return b""
    extra = b""
    if risk_classes:
        extra = b',"tags":' + encode_json(sorted(risk_classes))
    for name in _CONTEXT_MEMBERS:
        value = call.context.get(name)
        if value is not None:
            extra += b',"%b":%b' % (name.encode(), encode_json(value))
    return extra
