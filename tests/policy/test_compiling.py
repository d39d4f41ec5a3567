"""Snapshots from outside: taken if a bundle compiles to them, refused in words if not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.bundles import EFFECTS, bundle, rule

from subluminal.canonical import digest, encode
from subluminal.errors import SubluminalError
from subluminal.policy.compiling import bundle_of, compile_bundle, read_snapshot

NAMES = {"glob": ["a", "b*", "*c", "d?e", "[f]*"], "regex": ["^g"]}
FULL = bundle(
    *[rule(kind, match={"tool_name": NAMES, "server_name": {"glob": ["*"]}, "risk_class": ["x"]}) for kind in EFFECTS if kind != "pin"],
    rule("deny", "more", match={"args": {"key_in": {"k": [1, 1.5, None]}}, "time": {"utc_hours": [[9, 17]]}}, suggest={"k": {"set": None}}, require="approval", expires_ms=5),
    rule("deny", "off", enabled=False),
    selectors={"env": ["ci"], "workload": {"labels": {"a": "b"}}},
)  # fmt: skip


def forged(**changes) -> bytes:
    data = {**compile_bundle(FULL).data, **changes}
    data = {key: value for key, value in data.items() if value is not ...}
    return encode({**data, "policy_hash": digest(data)})


def test_a_bundle_of_every_kind_comes_back_as_one_that_compiles_to_the_same():
    snapshot = compile_bundle(FULL)
    read, again = read_snapshot(snapshot.to_json())
    assert read.policy_hash == compile_bundle(again).policy_hash == snapshot.policy_hash
    assert [each.rule_id for each in again.rules] == [each.rule_id for each in FULL.rules[:-1]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policy_id": ...}, "a field is missing or has the wrong type"),
        ({"mode": "x"}, "a field is missing or has the wrong type"),
        ({"mode": []}, "a field is missing or has the wrong type"),
        ({"rules": ...}, "`rules`: expected a list, got nothing"),
        ({"rules": 7}, "`rules`: expected a list"),
        ({"rules": [7]}, "`rules[0]`: expected a mapping"),
        ({"rules": [{"kind": "deny"}]}, "`rules[0]`: missing field"),
        ({"defaults": {}}, "`defaults`: missing field `decision_on_error`"),
        ({"policy_id": ""}, "`policy_id`: must not be empty"),
        ({"extra": 1}, "its bundle compiles to another snapshot"),
    ],
)
def test_a_forged_snapshot_is_refused(changes, message):
    with pytest.raises(SubluminalError) as refused:
        read_snapshot(forged(**changes))
    assert str(refused.value).startswith("the snapshot was not made by `sub policy compile`: ")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "names",
    [
        None,
        7,
        {},
        {"any": False, "exact": 7},
        {"any": False, "exact": ["a*"]},
        {"any": 1, "prefix": [3]},
    ],
)
def test_forged_patterns_are_refused(names):
    (first, *rest) = compile_bundle(FULL).data["rules"]
    match = {**first["match"], "tool_name": names}
    with pytest.raises(SubluminalError):
        read_snapshot(forged(rules=[{**first, "match": match}, *rest]))


def test_an_edited_snapshot_is_reported_as_edited():
    text = compile_bundle(FULL).to_json().replace(b'"version":"1"', b'"version":"2"')
    with pytest.raises(SubluminalError, match="does not match its contents"):
        read_snapshot(text)


globs = st.lists(
    st.text("ab*?[]!-", min_size=1, max_size=5).filter(lambda glob: "[" not in glob), max_size=3
)


@given(globs, st.lists(st.sampled_from(["^a", "b$", ".*"]), max_size=2))
@settings(max_examples=200)
def test_any_patterns_survive_the_way_there_and_back(glob, regex):
    snapshot = compile_bundle(
        bundle(rule("deny", match={"tool_name": {"glob": glob, "regex": regex}}))
    )
    assert compile_bundle(bundle_of(snapshot)).policy_hash == snapshot.policy_hash
