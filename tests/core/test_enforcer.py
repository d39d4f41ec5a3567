"""The core without a protocol: what `begin` and `finish` promise every door (Pack 7)."""

import os

import pytest
from tests.adapters.policies import budget, deny, snapshot
from tests.adapters.records import calls_of, events_of, lines_of
from tests.hosts import enforcer_in

from subluminal.canonical import args_hash
from subluminal.contracts.call import ToolCall
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import ErrorClass, Layer, ReasonCode, Status, Transport
from subluminal.core.batches import begin_batch
from subluminal.core.enforcer import CallEnding
from subluminal.core.records.previews import Previewer
from subluminal.core.records.redaction.redactor import Redactor
from subluminal.core.rounds import Round, begin_round
from subluminal.core.runs.open_runs import OpenRuns
from subluminal.journal import JournalUnavailable
from subluminal.policy.evaluation import Engine
from subluminal.policy.program import Program
from subluminal.secrets.value import SecretValue
from subluminal.state.errors import StateBusy


def call(name="t", **context):
    return ToolCall(
        server_name="probe",
        tool_name=name,
        args={},
        args_hash=args_hash({}),
        bytes_in=10,
        transport=Transport.UNKNOWN,
        context=context,
    )


def finished(enforcer, home):
    enforcer.flush()
    enforcer.run.leave()
    enforcer.run.close()
    return events_of(home)


def test_start_and_decision_are_on_disk_before_begin_returns(own_home):
    enforcer = enforcer_in(own_home)
    enforcer.begin(call(), b"{}")
    written = b"".join(line for _, line in lines_of(own_home))
    assert b'"tool_call_start"' in written
    assert b'"tool_call_decision"' in written
    finished(enforcer, own_home)


def test_only_the_first_end_of_a_call_counts(own_home):
    enforcer = enforcer_in(own_home)
    ruling = enforcer.begin(call(), b"{}")
    enforcer.finish(ruling, CallEnding(Status.TIMEOUT, 0, error_class=ErrorClass.TIMEOUT))
    enforcer.finish(ruling, CallEnding(Status.OK, 5, b"{}"))
    (events,) = calls_of(finished(enforcer, own_home))
    assert events[-1]["status"] == "TIMEOUT"


@pytest.mark.parametrize(("on_error", "passes"), [("ALLOW", True), ("BLOCK", False)])
def test_a_bug_of_ours_while_deciding_applies_decision_on_error(
    own_home, monkeypatch, on_error, passes
):
    enforcer = enforcer_in(own_home, snapshot(deny("rm"), decision_on_error=on_error))
    told = []
    enforcer._on_bug = told.append
    monkeypatch.setattr(type(enforcer.engine), "evaluate", _raise(ZeroDivisionError("oops")))
    assert enforcer.begin(call(), b"{}").is_allowed is passes
    assert [type(bug) for bug in told] == [ZeroDivisionError]
    monkeypatch.undo()
    enforcer.begin(call("rm"), b"{}")
    events = finished(enforcer, own_home)
    reasons = [each[1]["decision"]["explain"]["reason_code"] for each in calls_of(events)]
    assert reasons == ["EVALUATION_ERROR", "DENYLIST_MATCH"]


@pytest.mark.parametrize(("on_error", "passes"), [("ALLOW", True), ("BLOCK", False)])
def test_counters_that_cannot_be_had_apply_decision_on_error(
    own_home, monkeypatch, on_error, passes
):
    enforcer = enforcer_in(own_home, snapshot(budget(5), decision_on_error=on_error))
    monkeypatch.setattr(type(enforcer.run.state), "locked", _raise(StateBusy("held", 50)))
    assert enforcer.begin(call(), b"{}").is_allowed is passes


@pytest.mark.parametrize(("on_error", "passes"), [("ALLOW", True), ("BLOCK", False)])
def test_what_cannot_be_recorded_does_not_run_unless_the_policy_says_so(
    own_home, monkeypatch, on_error, passes
):
    enforcer = enforcer_in(own_home, snapshot(deny("rm"), decision_on_error=on_error))
    full = JournalUnavailable("journal", OSError(28, os.strerror(28)))
    monkeypatch.setattr(type(enforcer.run.journal), "write_chained", _raise(full))
    ruling = enforcer.begin(call(), b"{}")
    assert ruling.is_allowed is passes
    assert ruling.decision.reason_code == ReasonCode.JOURNAL_UNAVAILABLE
    refused = enforcer.begin(call("rm"), b"{}")
    assert not refused.is_allowed, "a refusal needs no record to be one"


def test_a_batch_of_which_only_a_part_can_be_recorded_is_refused_whole(own_home, monkeypatch):
    enforcer = enforcer_in(own_home, snapshot(deny("rm")))
    write, writes = type(enforcer.run.journal).write_chained, []

    def full_at_the_second(journal, *lines):
        writes.append(1)
        if len(writes) == 2:
            raise JournalUnavailable("journal", OSError(28, os.strerror(28)))
        write(journal, *lines)

    monkeypatch.setattr(type(enforcer.run.journal), "write_chained", full_at_the_second)
    rulings = begin_batch(enforcer, [(call(), b"{}"), (call("u"), b"{}")])
    reasons = [each.decision.reason_code for each in rulings]
    assert reasons == [ReasonCode.BATCH_REFUSED, ReasonCode.JOURNAL_UNAVAILABLE]
    assert not any(each.is_allowed for each in rulings)
    totals = enforcer.run.state.totals()
    assert (totals.calls_allowed, totals.calls_blocked) == (0, 2)


def begin_a_batch(enforcer):
    return begin_batch(enforcer, [(call("rm"), b"{}")])[0]


def begin_a_round(enforcer):
    ruling = enforcer.begin(call("rm"), b"{}")
    enforcer.engine = Engine([(Layer.USER, snapshot(deny("rm")))], enforcer.run.identity)
    assert not begin_round(Round(ruling, 2, 10, b"{}"), 32)
    return ruling


@pytest.mark.parametrize(
    ("begin", "looks"),
    [
        (lambda enforcer: enforcer.begin(call("rm"), b"{}"), 1),
        (begin_a_batch, 1),
        (begin_a_round, 2),
    ],
    ids=["call", "batch", "round"],
)
def test_the_first_call_of_a_tool_collects_its_rules_without_the_lock(
    own_home, monkeypatch, begin, looks
):
    """Names may be costly to match, and the other shims of the run must not wait for that."""
    first = snapshot(deny("other") if begin is begin_a_round else deny("rm"))
    enforcer = enforcer_in(own_home, first)
    collect, was_held = Program._collect, []

    def noting(program, *names):
        was_held.append(enforcer.run.state.locked().held)
        return collect(program, *names)

    monkeypatch.setattr(Program, "_collect", noting)
    refused = begin(enforcer)

    assert (was_held, refused.decision.reason_code) == ([False] * looks, "DENYLIST_MATCH")


def test_a_limit_that_refuses_opens_no_grants_while_the_run_has_none(own_home, monkeypatch):
    """It is refused under the run's lock, and an agent may try again and again."""
    opened = []
    approvals_of = OpenRuns._approvals_of
    monkeypatch.setattr(
        OpenRuns, "_approvals_of", lambda *run: opened.append(1) or approvals_of(*run)
    )
    enforcer = enforcer_in(own_home, snapshot(budget(0)))
    for _ in range(3):
        assert not enforcer.begin(call(), b"{}").is_allowed
    assert opened == []
    os.makedirs(enforcer.gates.approvals_path)
    assert not enforcer.begin(call(), b"{}").is_allowed
    assert opened == [1]


def test_a_refusal_that_no_policy_made_holds_without_any_policy(own_home):
    enforcer = enforcer_in(own_home)
    ruling = enforcer.refuse(call(), ReasonCode.EVALUATION_ERROR, "it cannot be forwarded")
    assert not ruling.is_allowed
    enforcer.finish(ruling, CallEnding(Status.ERROR, 0, error_class=ErrorClass.POLICY_BLOCK))
    (events,) = calls_of(finished(enforcer, own_home))
    assert events[1]["decision"]["action"] == "BLOCK"


def _raise(error):
    def raising(*_args, **_options):
        raise error

    return raising


def test_the_record_says_when_breakers_learnt_of_an_end(own_home):
    """Replay needs the clock of the decision, and the calls that were decided before an end."""
    enforcer = enforcer_in(own_home)
    failing = enforcer.begin(call(), b"{}")
    fine = enforcer.begin(call(), b"{}")
    enforcer.finish(failing, CallEnding(Status.ERROR, 0, error_class=ErrorClass.UPSTREAM_ERROR))
    enforcer.finish(fine, CallEnding(Status.OK, 5, b"{}"))
    failed, passed = calls_of(finished(enforcer, own_home))
    assert failed[0]["call"]["mono_ms"] == failing.started_ns // 1_000_000
    assert failed[-1]["after_seq"] == 2
    assert failed[-1]["mono_ms"] >= failed[0]["call"]["mono_ms"]
    assert "after_seq" not in passed[-1]  # nobody counts what went well


def test_what_one_layer_would_have_done_is_on_record_beside_anothers_allow(own_home):
    """Layers share the DEFAULT_ALLOW object, and its JSON is kept; it must not be used for another policy."""
    observed = snapshot(deny("rm"), mode="observe")
    enforcer = enforcer_in(own_home, snapshot(budget(9)), observed)
    for name in ("read", "rm", "read"):
        enforcer.begin(call(name), b"{}")
    decisions = [each[1]["decision"] for each in calls_of(finished(enforcer, own_home))]
    assert ["would_be" in each for each in decisions] == [False, True, False]


def test_a_decision_names_the_layers_of_its_own_time(own_home):
    """A reload may change a layer that does not decide."""
    first, second = snapshot(budget(9)), snapshot(deny("rm"))
    enforcer = enforcer_in(own_home, first)
    enforcer.begin(call(), b"{}")
    enforcer.engine = Engine([(Layer.USER, first), (Layer.REPOSITORY, second)], Identity())
    enforcer.begin(call(), b"{}")
    decisions = [each[1]["decision"] for each in calls_of(finished(enforcer, own_home))]
    assert [len(each.get("policies", ())) for each in decisions] == [0, 2]


def test_a_rejection_keeps_a_hint_even_where_a_secret_is_one_of_our_own_words(own_home):
    """The masked decision is not valid JSON then; the agent still gets a hint not to repeat the call."""
    made = enforcer_in(own_home, snapshot(budget(0, "REJECT_WITH_HINT")))
    redactor = Redactor([SecretValue("odd", "REJECT_WITH_HINT")])
    made._previews = Previewer(redactor, record_mode="metadata", max_bytes=99, full_bytes=99)
    decision = made.begin(call(), b"{}").decision
    assert (decision.action, decision.summary) == ("REJECT_WITH_HINT", "[REDACTED]")
    assert decision.hint.hint_text == "[REDACTED]"
    assert decision.hint.retry_advice
    (events,) = calls_of(finished(made, own_home))
    assert events[1]["decision"]["hint"]["hint_text"] == "[REDACTED]"


def test_whoever_waited_for_the_lock_decides_by_the_clock_of_its_turn(own_home, monkeypatch):
    """Otherwise a bucket's clock would go back, and the same seconds would refill it twice."""
    enforcer = enforcer_in(own_home, snapshot(budget(9)))
    now = {"ms": 1_000_000}
    monkeypatch.setattr("time.monotonic_ns", lambda: now["ms"] * 1_000_000)
    lock = type(enforcer.run.state.locked())
    enter = lock.__enter__

    def wait_and_enter(self):
        now["ms"] += 7_000  # others had their turns meanwhile
        enter(self)

    monkeypatch.setattr(lock, "__enter__", wait_and_enter)
    decided = []
    evaluate = enforcer.engine.evaluate
    monkeypatch.setattr(
        type(enforcer.engine),
        "evaluate",
        lambda _self, *args, **times: decided.append(times["mono_ms"]) or evaluate(*args, **times),
    )
    enforcer.begin(call(), b"{}")
    monkeypatch.undo()
    assert decided == [1_007_000]
    ((start, *_),) = calls_of(finished(enforcer, own_home))
    assert start["call"]["mono_ms"] == 1_007_000, "replay goes by the same clock"
