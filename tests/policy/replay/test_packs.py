"""Kernel rules in a replay: packs are asked again, if they can be."""

from tests.policy.bundles import rule
from tests.policy.desk import policy, teller_of
from tests.policy.replay.runs import Record, changes

from subluminal.contracts.vocabulary import Layer
from subluminal.policy.replay.comparing import Doubt
from subluminal.policy.replay.hidden_args import PartialArgs

REPOSITORY = Layer.REPOSITORY
ASK = rule("kernel", "desk")
OWN = policy(ASK, rule("budget", limit_calls=6))
OTHER = policy(ASK, rule("budget", limit_calls=5))


def recorded() -> Record:
    record = Record((REPOSITORY, OWN))
    for said in ("EXECUTE", "REFUSE", "ESCALATE", "WAIT", "BROKEN", "EXECUTE"):
        record.call(args={"say": said})
    return record


def test_the_policy_of_the_record_changes_nothing() -> None:
    assert changes(recorded().replay(OWN)[0]) == ["same"] * 6


def test_another_policy_asks_the_packs_again() -> None:
    rows = recorded().replay(OTHER)[0]
    assert changes(rows) == ["same"] * 5 + ["newly_blocked"]
    assert changes(recorded().replay(policy())[0])[1] == "newly_allowed"


def test_a_grant_is_the_confirmation_there_too() -> None:
    record = Record((REPOSITORY, OWN))
    record.call(args={"say": "ESCALATE"})
    record.answer("approved", "desk", grant_id="g")
    record.call(args={"say": "ESCALATE"})
    rows = record.replay(OWN)[0]
    assert changes(rows) == ["same"] * 2
    assert rows[1].now is not None
    assert rows[1].now.reason_code == "APPROVAL_GRANTED"


def test_a_pack_that_is_not_here_leaves_the_call_undetermined() -> None:
    record = Record((REPOSITORY, policy()))
    record.call(args={"say": "GONE"})
    record.call(args={"say": "EXECUTE"})
    rows = record.replay(OTHER)[0]
    assert [row.doubt for row in rows] == [Doubt.PACK, Doubt.COUNTERS]
    assert rows[0].plain()["doubt"] == "pack"


def test_as_recorded_the_decision_stands() -> None:
    record = Record((REPOSITORY, OWN))
    record.call(args={"say": "EXECUTE"}, on_record={"say": "GONE"})
    assert changes(record.replay(OWN)[0]) == ["same"]


def test_hidden_arguments_cannot_be_asked_about() -> None:
    record = Record((REPOSITORY, policy()))
    hidden = PartialArgs({}, frozenset({"say"}).__contains__, frozenset({"say"}))
    record.call(args={"say": "REFUSE"}, on_record=hidden)
    (row,) = record.replay(OTHER)[0]
    assert row.doubt is Doubt.ARGUMENTS


def test_without_judges_a_rule_cannot_be_evaluated() -> None:
    record = Record((REPOSITORY, policy()))
    record.call(args={"say": "EXECUTE"})
    (row,) = record.replay(OTHER, judge_of=None)[0]
    assert row.now is not None
    assert row.now.reason_code == "EVALUATION_ERROR"
    (row,) = record.replay(OTHER, judge_of=teller_of)[0]
    assert row.change == "same"
