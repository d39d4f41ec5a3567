"""Snapshots travel as JSON and are refused when they are not what they claim (Pack 2.6)."""

import json

import msgspec
import pytest
from tests.policy.bundles import bundle, rule
from tests.requirements import requirement

from subluminal.contracts.bundle import Bundle
from subluminal.errors import SubluminalError
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.evaluation import NO_POLICY
from subluminal.policy.snapshot import Snapshot


@requirement("2.6:snapshot")
def test_a_snapshot_has_its_hash_its_matchers_and_every_default():
    snapshot = compile_bundle(bundle(rule("budget", match={"tool_name": {"glob": ["a*b"]}})))

    data = json.loads(snapshot.to_json())

    assert data["policy_id"] == "p"
    assert data["version"] == "1"
    assert data["policy_hash"] == snapshot.policy_hash == snapshot.ref.policy_hash
    assert data["defaults"]["fail_open_read_tools"] is False
    (compiled,) = data["rules"]
    assert compiled["match"]["tool_name"]["re2"] == ["^(?s:a.*b)$"]
    assert compiled["effect"]["budget"]["cost_units_per_call"] == 1
    assert compiled["effect"]["budget"]["count"] == "attempts"


def test_set_null_is_kept_apart_from_no_set():
    suggest = {"a": {"set": None}, "b": {"remove": True}}
    snapshot = compile_bundle(bundle(rule("deny", suggest=suggest)))

    compiled = snapshot.data["rules"][0]["effect"]["suggest"]

    assert compiled["a"]["set"] is None
    assert "set" not in compiled["b"]


def test_a_snapshot_that_travelled_is_the_same():
    snapshot = compile_bundle(bundle(rule("deny", suggest={"a": {"set": 0.1}})))

    again = Snapshot.from_json(snapshot.to_json())

    assert (again.data, again.policy_hash) == (snapshot.data, snapshot.policy_hash)
    assert again.ref == snapshot.ref


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda data: data.pop("policy_hash"), "`policy_hash` is missing"),
        (lambda data: data.update(format=0), "another version of `sub`"),
        (lambda data: data.update(mode="observe"), "does not match its contents"),
        (lambda data: data.update(policy_hash="0" * 64), "does not match its contents"),
    ],
)
def test_a_snapshot_that_is_not_what_it_claims_is_refused(change, told):
    data = json.loads(compile_bundle(bundle(rule("deny"))).to_json())
    change(data)

    with pytest.raises(SubluminalError, match=told):
        Snapshot.from_json(json.dumps(data).encode())


def test_a_list_is_not_a_snapshot():
    with pytest.raises(SubluminalError, match="not a compiled policy"):
        Snapshot.from_json(b"[]")


def test_a_run_without_a_policy_has_the_hash_of_the_empty_policy():
    """The Pack asks for a hash in every decision; a word is not a hash."""
    empty = {
        "policy_id": "none",
        "version": "0",
        "mode": "observe",
        "defaults": {"decision_on_error": "ALLOW"},
        "selectors": {},
        "rules": [],
    }
    assert compile_bundle(msgspec.convert(empty, Bundle)).ref == NO_POLICY
