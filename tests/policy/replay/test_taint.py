"""Replay and the level of a run: what a record says of it, and what it leaves open."""

from typing import Any

from tests.policy.bundles import bundle, rule, tools
from tests.policy.replay.runs import Record, changes, said_outside

from subluminal.contracts.vocabulary import Action, Layer, ReasonCode, Taint
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.replay.comparing import Doubt
from subluminal.policy.replay.hidden_args import PartialArgs
from subluminal.policy.replay.recorded import RecordedLevel
from subluminal.policy.snapshot import Snapshot

REPOSITORY = Layer.REPOSITORY
READ = rule("taint", "read", match=tools("read"))
PUSH = rule("deny", "push", match={**tools("push"), "taint": {"below": "TRUSTED"}})
KEYED = rule("taint", "keyed", match={**tools("read"), "args": {"has_keys": ["url"]}})
ALL_TEXT = rule("taint", "all")


def policy(*rules: Any, **more: Any) -> Snapshot:
    return compile_bundle(bundle(*rules, **more))


def test_a_candidate_lowers_by_its_own_rules():
    record = Record((REPOSITORY, policy(PUSH)))
    record.call("read")
    record.call("push")
    rows, _, _ = record.replay(policy(READ, PUSH))
    assert changes(rows) == ["same", "newly_blocked"]
    rows, _, _ = record.replay(policy(READ, PUSH, mode="observe"))
    assert rows[1].now is not None
    assert rows[1].now.would_be is not None


def test_a_run_starts_as_it_was_recorded_or_as_the_candidate_says():
    record = Record((REPOSITORY, policy(PUSH)))
    record.call("push")
    rows, _, _ = record.replay(policy(PUSH), start=Taint.UNTRUSTED)
    assert changes(rows) == ["newly_blocked"]
    low = policy(PUSH, defaults={"decision_on_error": "BLOCK", "taint": "UNTRUSTED"})
    rows, _, _ = record.replay(low)
    assert changes(rows) == ["newly_blocked"]


def test_a_person_raises_the_level_and_no_start_lowers_it_again():
    low = policy(PUSH, defaults={"decision_on_error": "BLOCK", "taint": "UNTRUSTED"})
    record = Record((REPOSITORY, policy(PUSH)))
    record.call("read")
    record.items.append(RecordedLevel(Taint.TRUSTED, raises=True))
    record.call("push")
    rows, _, _ = record.replay(low)
    assert changes(rows) == ["same", "same"]
    late = Record((REPOSITORY, policy(PUSH)))
    late.call("read")
    late.items.append(RecordedLevel(Taint.TRUSTED, raises=True))
    late.call("read")
    late.reload((REPOSITORY, policy(PUSH, version="2")))
    late.call("push")
    rows, _, _ = late.replay(policy(READ, PUSH))
    assert changes(rows) == ["same", "same", "newly_blocked"]


def test_a_policy_that_comes_later_does_not_undo_what_a_person_set():
    low = policy(policy_id="user", defaults={"decision_on_error": "BLOCK", "taint": "UNTRUSTED"})
    for raised, wanted in ((True, "same"), (False, "newly_blocked")):
        record = Record((REPOSITORY, policy(PUSH)))
        record.call("read")
        if raised:
            record.items.append(RecordedLevel(Taint.SYSTEM, raises=True))
        record.call("read")
        record.reload((Layer.USER, low), (REPOSITORY, policy(PUSH)))
        record.call("push")
        rows, _, _ = record.replay(policy(PUSH), REPOSITORY)
        assert changes(rows) == ["same", "same", wanted]


def test_other_changes_lower():
    record = Record((REPOSITORY, policy(PUSH)))
    record.items.append(RecordedLevel(Taint.UNTRUSTED))
    record.call("push")
    rows, _, _ = record.replay(policy(PUSH))
    assert changes(rows) == ["newly_blocked"]


def test_a_resource_counts_by_the_rules_of_the_candidate():
    record = Record((REPOSITORY, policy(PUSH)))
    record.items.append(RecordedLevel(Taint.TRUSTED, "git"))
    record.call("push")
    assert changes(record.replay(policy(PUSH))[0]) == ["same"]
    assert changes(record.replay(policy(ALL_TEXT, PUSH))[0]) == ["newly_blocked"]


def test_calls_that_no_rule_judged_lower():
    for code in (ReasonCode.AMBIGUOUS_MESSAGE, ReasonCode.EVALUATION_ERROR):
        own = policy(ALL_TEXT, PUSH, defaults={"decision_on_error": "ALLOW"})
        record = Record((REPOSITORY, own))
        refs = record.engine.policies
        record.call("read", event=said_outside(code, Action.ALLOW, refs))
        record.call("push", event=said_outside(code, Action.BLOCK, refs))
        record.call("other")
        rows, run, _ = record.replay(own)
        assert run._counters.read(3, b"taint") == (2,)
        assert rows[0].now is not None


def test_a_level_that_hidden_arguments_decide_is_uncertain():
    own = policy(PUSH)
    record = Record((REPOSITORY, own))
    masked = PartialArgs({}, lambda key: key == "url")
    record.call("read", {"url": 1}, on_record=masked)
    record.call("push")
    rows, _, _ = record.replay(policy(KEYED, PUSH))
    assert rows[1].change.value == "undetermined"
    assert rows[1].doubt is Doubt.COUNTERS


def test_the_lowest_level_is_certain_whatever_is_missing():
    record = Record((REPOSITORY, policy(PUSH)))
    record.call("read")
    record.call("read", {"url": 1}, on_record=PartialArgs({}, lambda _: True))
    record.call("other", seq=9)
    record.call("push", seq=10)
    both = policy(READ, rule("taint", "more", match={"args": {"has_keys": ["x"]}}), PUSH)
    rows, _, _ = record.replay(both)
    assert rows[3].change.value == "newly_blocked"
    rows, _, _ = record.replay(policy(KEYED, PUSH))
    assert rows[3].change.value == "undetermined"


def test_layers_that_differ_in_how_far_they_lower():
    own = (REPOSITORY, policy(PUSH))
    mild = policy(rule("taint", "mild", match=tools("read"), lower_to="TRUSTED"), policy_id="user")
    record = Record((Layer.USER, mild), own)
    record.call("read", {"url": 1}, on_record=PartialArgs({}, lambda _: True))
    record.call("push")
    rows, _, _ = record.replay(policy(KEYED, PUSH), REPOSITORY)
    assert rows[1].change.value == "undetermined"
