"""Policies as they were in force: their rules are in the ledger, and are the ones that decided."""

import itertools
import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from tests.ledger.events import POLICY, START_MS
from tests.ledger.home import Home
from tests.policy.bundles import bundle, rule
from tests.shim.household import Household, policy

from subluminal.ledger.query import policies
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.snapshot import Snapshot

SNAPSHOT = compile_bundle(bundle(rule("deny", suggest={"a": {"set": 0.1}}), rule("budget")))
HASH = SNAPSHOT.policy_hash
RULES = "SELECT rules_json FROM policy_versions WHERE rules_hash = ?"


@pytest.fixture
def full(home: Home) -> Home:
    """A run under a policy that its shim told whole."""
    producer = home.producer()
    producer.run_start()
    producer.load_policy(SNAPSHOT.ref, SNAPSHOT.to_json())
    home.ingest()
    return home


def test_the_rules_are_kept_under_their_hash_and_decide_again(full: Home) -> None:
    ((text,),) = full.rows(RULES, HASH)
    assert sha256(str(text).encode()).hexdigest() == HASH
    assert [each["kind"] for each in json.loads(str(text))["rules"]] == ["deny", "budget"]
    found = policies.find_policy(full.reader(), HASH)
    assert found == SNAPSHOT.to_json()
    assert Snapshot.from_json(found).ref == SNAPSHOT.ref
    assert full.verify().findings == []


def test_queries_return_them(full: Home) -> None:
    listed = {each.rules_hash: each.rules for each in policies.list_policies(full.reader())}
    assert listed == {HASH: 2, POLICY.policy_hash: None}
    one = policies.show_policy(full.reader(), HASH)
    assert one is not None
    assert (one.policy.rules, one.snapshot["policy_hash"]) == (2, HASH)
    other = policies.show_policy(full.reader(), POLICY.policy_hash)
    assert other is not None
    assert other.snapshot is None
    assert policies.show_policy(full.reader(), "nobody's") is None
    assert policies.find_policy(full.reader(), POLICY.policy_hash) is None


@pytest.mark.parametrize("order", list(itertools.permutations((0, 1, 2))))
def test_one_shim_that_reports_the_rules_is_enough(home: Home, order: tuple[int, ...]) -> None:
    """Whichever comes first, also beside one that says something else under the same hash."""
    told = (None, SNAPSHOT.to_json(), b'{"rules":[]}')
    for number in order:
        producer = home.producer(f"run{number}", f"shim{number}")
        producer.clock_ms += number
        producer.load_policy(SNAPSHOT.ref, told[number])
        home.ingest()
    assert policies.find_policy(home.reader(), HASH) == SNAPSHOT.to_json()
    assert home.rows("SELECT created_at FROM policy_versions") == [(START_MS + 1,)]
    assert home.verify().findings == []
    assert home.take(home.lines()) == 0


@pytest.mark.parametrize(
    "lie",
    [b"[]", b"7", b'{"rules":[],"rules":[]}', b'{"a":' * 600 + b"1" + b"}" * 600],
)
def test_a_snapshot_with_another_hash_is_not_stored(home: Home, lie: bytes) -> None:
    home.producer().load_policy(SNAPSHOT.ref, lie)
    assert home.ingest() == 1
    assert home.rows(RULES, HASH) == [(None,)]
    assert home.verify().findings == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("rules_json = replace(rules_json, 'deny', 'allow')", "does not have the hash"),
        ("rules_json = NULL", "the events have the rules"),
        ("mode = 'observe'", "`mode` is not what the events say"),
        ("created_at = created_at - 1", "`created_at` is not what the events say"),
    ],
)
def test_an_edit_of_a_stored_policy_is_found(full: Home, change: str, told: str) -> None:
    sql = f"UPDATE policy_versions SET {change} WHERE rules_hash = '{HASH}'"
    full.store.connection.execute(sql)
    (found,) = full.verify().findings
    assert (found.table, found.row) == ("policy_versions", "policy `p` version `1`")
    assert told in found.message


def test_rules_without_an_event_are_found(home: Home) -> None:
    home.producer().load_policy(SNAPSHOT.ref)
    home.ingest()
    text = SNAPSHOT.to_json().decode().replace(f'"policy_hash":"{HASH}",', "")
    home.store.connection.execute("UPDATE policy_versions SET rules_json = ?", (text,))
    (found,) = home.verify().findings
    assert found.message == "`rules_json` is not what the events say"


def test_a_broken_policy_is_said_at_the_start_of_the_run(
    home: Home, household: Household, sub: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only where calls are refused: a person sees it before the first call."""
    monkeypatch.setenv("SUB_HOME", home.places.home)
    household.write_policy("policy_id: p\nrules: [{rule_id: a, kind: denny}]\n")
    household.start().ready()
    start = household.wait_event("run_start")
    problem = start["run"]["policy_problem"]
    assert problem.startswith(f"the policy `{home.places.policy}` is not in force: ")
    assert "\n" not in problem
    line = next(line for line in sub("tail", "--no-follow").out.splitlines() if "START" in line)
    assert line.endswith(f"every call is refused: {problem}")


def test_a_sound_policy_and_none_have_no_problem(home: Home, household: Household) -> None:
    household.start(run="without").ready()
    assert "policy_problem" not in household.wait_event("run_start", run_id="without")["run"]
    household.write_policy(policy())
    household.start(run="with").ready()
    assert "policy_problem" not in household.wait_event("run_start", run_id="with")["run"]
