"""Which layer a candidate takes (policy-layers)."""

from tests.policy.bundles import bundle, rule, tools
from tests.policy.replay.runs import Record, changes

from subluminal.contracts.vocabulary import POLICY_LAYERS
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.replay import layering as layering_module
from subluminal.policy.snapshot import Snapshot

MANAGED, USER, REPOSITORY = POLICY_LAYERS


def denying(tool: str, policy_id: str, **more) -> Snapshot:
    return compile_bundle(
        bundle(rule("deny", tool, match=tools(tool)), policy_id=policy_id, **more)
    )


def three() -> Record:
    record = Record(
        (MANAGED, denying("m", "managed")),
        (USER, denying("u", "user")),
        (REPOSITORY, denying("r", "repo")),
    )
    for tool in ("m", "u", "r", "x"):
        record.call(tool)
    return record


def test_the_layer_with_the_same_policy_id():
    rows, run, _ = three().replay(denying("x", "user"))
    assert changes(rows) == ["same", "newly_allowed", "same", "newly_blocked"]
    assert not run.layering.stands_for_others


def test_the_layer_that_the_caller_names():
    rows, run, _ = three().replay(denying("x", "user"), MANAGED)
    assert changes(rows) == ["newly_allowed", "same", "same", "newly_blocked"]
    assert not run.layering.stands_for_others


def test_a_layer_that_the_run_did_not_have_is_added_in_its_place():
    record = Record((MANAGED, denying("x", "managed")), (REPOSITORY, denying("x", "repo")))
    record.call("x")
    ((row), *_), _, _ = record.replay(denying("x", "new"), USER)
    assert row.change == "same"  # the managed layer still comes first


def test_all_layers_if_none_has_the_same_policy_id():
    rows, run, _ = three().replay(denying("x", "other"))
    assert changes(rows) == ["newly_allowed"] * 3 + ["newly_blocked"]
    assert run.layering.stands_for_others


def test_a_run_without_policies_is_replayed_with_the_candidate():
    record = Record()
    record.call("x")
    rows, run, layering = record.replay(denying("x", "new"))
    assert changes(rows) == ["newly_blocked"]
    assert not run.layering.stands_for_others
    assert not layering.missing


def test_the_candidate_is_in_force_throughout_a_run_that_reloaded():
    before, after = denying("a", "p"), denying("b", "p", version="2")
    record = Record((USER, before))
    record.call("a")
    record.reload((USER, after))
    record.call("a")
    record.call("b")
    assert changes(record.replay(after)[0]) == ["newly_allowed", "same", "same"]
    assert changes(record.replay(before)[0]) == ["same", "newly_blocked", "newly_allowed"]


def test_without_events_of_loading_the_decisions_tell_the_layers():
    rows, _, _ = three().replay(denying("x", "user"), loads=False)
    assert changes(rows) == ["same", "newly_allowed", "same", "newly_blocked"]
    alone = Record((USER, denying("u", "user")))
    alone.call("u")
    assert changes(alone.replay(denying("x", "user"), loads=False)[0]) == ["newly_allowed"]


def test_selectors_are_asked_of_the_recorded_identity():
    record = Record()
    record.call("x")
    candidate = denying("x", "new", selectors={"env": ["prod"]})
    (row,), _, _ = record.replay(candidate)
    assert row.now.reason_code == "POLICY_NOT_APPLICABLE"


def test_engines_are_kept_within_bounds(monkeypatch):
    monkeypatch.setattr(layering_module, "_MAX_KEPT", 1)
    record = Record((USER, denying("a", "p")))
    record.call("a")
    record.reload((USER, denying("b", "p")))
    record.call("b")
    rows, _, layering = record.replay(denying("a", "p"))
    assert changes(rows) == ["same", "newly_allowed"]
    assert len(layering._settings) == len(layering._placed) == 1
