"""Offers decided calls to later doors, and takes calls over that an earlier door decided.

`core.host` calls this; `core.handovers` keeps the files. A call that is taken over passes no rule
and counts nothing again. Stops hold for it as for a new call: a call that is stopped by now is not
taken, so that it is decided anew, refused, and on record as refused.
"""

import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from subluminal.contracts.call import ToolCall
from subluminal.contracts.decision import Decision
from subluminal.contracts.events import CallRef
from subluminal.contracts.vocabulary import TAINT_RANK, ReasonCode
from subluminal.core.handovers import Found, Handover, Handovers, key_of
from subluminal.core.rounds import NoCounters
from subluminal.core.ruling import Handed, Ruling, asked_of
from subluminal.core.runs.attendance import is_present
from subluminal.core.runs.opening import problem_of
from subluminal.policy.evaluation import Call, Evaluation
from subluminal.policy.program import DEFAULT_ALLOW
from subluminal.system.processes import boot_id

if TYPE_CHECKING:
    from subluminal.core.enforcer import Enforcer
    from subluminal.core.host import Host


class _Taken(Evaluation, gc=False):
    """The assessment of a call that another door decided: it passes, and breakers learn its end."""

    @property
    def is_watched(self) -> bool:
        """True: the end says after which call of the run it came, because replay needs that."""
        return True


def offer(handovers: Handovers, ruling: Ruling, *, by_run: bool) -> None:
    """Offers a decided call to later doors; `by_run` without its id, which they do not learn."""
    call, enforcer = ruling.call, ruling.enforcer
    run, handed = enforcer.run, ruling.handed or Handed()
    if not ruling.is_allowed or ruling.finished or handed.offer or problem_of(run) is not None:
        return
    key, lives_ms = key_of(call, run.run_id, by_run=by_run)
    since_ms = (time.monotonic_ns() - ruling.started_ns) // 1_000_000
    handed.offer = handovers.offer(
        key,
        run.shim_id,
        Handover(
            run_id=run.run_id,
            call=CallRef(
                call_id=ruling.call_id,
                server_name=call.server_name,
                tool_name=ruling.tool_name,
                args_hash=call.args_hash,
            ),
            begun_by=handed.begun_by or run.shim_id,
            transport=call.transport,
            started_ms=time.time_ns() // 1_000_000 - since_ms,
            started_ns=ruling.started_ns,
            boot=boot_id(),
            lives_ms=lives_ms,
            grants=ruling.assessment.grants_used,
            asked=ruling.decision.summary if _is_asked(ruling.decision) else "",
            key=key,
        ),
    )
    ruling.handed = handed


def take(host: "Host", handovers: Handovers, call: ToolCall, session: str | None) -> Ruling | None:
    """Takes over the oldest offer of exactly this call; returns None if there is none.

    A door takes an offer of its own kind only by the call's id, after another process of this kind
    died. Without ids, an identical call at the same kind of door is another call.
    """
    number = host.offers.number()
    names = handovers.names()
    if not names:
        host.offers.saw_none(number)
        return None
    key, _ = key_of(call, host.run_of(session))
    has_id = "client_call_id" in call.context
    for found in handovers.offered(key, names):
        handover = found.handover
        is_same_kind = handover.transport == call.transport
        if (
            handover.key == key
            and handover.is_good()
            and host.run_of(handover.run_id) == handover.run_id
            and not (is_same_kind and (not has_id or is_present(host.places, found.offered_by)))
        ):
            enforcer = host.claim(handover.run_id)
            ruling = _taken(handovers, found, call, enforcer)
            if ruling is not None:
                return ruling
            host.release(enforcer)
    return None


def _taken(
    handovers: Handovers, found: Found, call: ToolCall, enforcer: "Enforcer"
) -> Ruling | None:
    """Takes one offer; None if it must not be taken, or if another process was first."""
    handover, run = found.handover, enforcer.run
    if problem_of(run) is not None or not run.is_entered:
        return None  # nobody would find this process if it died
    granted = frozenset(handover.grants)
    asked = replace(asked_of(call), granted=granted, lifted=granted)
    if enforcer.engine.asks_ahead or call.given is not None:
        asked = enforcer.with_reading(asked, call)
    enforcer.gates.stops.make_safe()
    if enforcer.over(asked) is not None:
        return None
    assessment = _assessment(enforcer, asked, handover.asked)
    now_ns = time.monotonic_ns()
    began_ns = handover.began_ns()
    call_id = handover.call.call_id
    path = handovers.take(found.path, run.shim_id, call_id)
    if not path:
        return None
    started_ns = now_ns if began_ns is None else began_ns
    handed = Handed(begun_by=handover.begun_by, taken=path)
    return Ruling(
        call, call_id, assessment, started_ns, enforcer, handed=handed, targets=asked.targets
    )


def _is_asked(decision: Decision) -> bool:
    return decision.reason_code == ReasonCode.CLIENT_ASKED


def _assessment(enforcer: "Enforcer", asked: Call, question: str) -> _Taken:
    """Finds the breakers that count the end of a call, under the policies in force.

    The rules are evaluated with empty counters, and nothing is counted. `question` is what the
    client asks its person about the call, if it does: a hook that takes the call over asks again.
    """
    decision = DEFAULT_ALLOW
    if question:
        decision = replace(decision, reason_code=ReasonCode.CLIENT_ASKED, summary=question)
    wall_ms, mono_ms = time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000
    # The door that decided the call has lowered the run; nothing is lowered again.
    rank = TAINT_RANK[enforcer.levels.now()] if enforcer.engine.asks_taint else 0
    counters = NoCounters(rank)
    found = enforcer.engine.evaluate(asked, counters, wall_ms=wall_ms, mono_ms=mono_ms)
    return _Taken(decision, found.policy, True, found.visits, risk_classes=found.risk_classes)
