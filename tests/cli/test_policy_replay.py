"""`sub policy replay`: what a shell sees of it."""

import json

import pytest
from tests.adapters.policies import budget, bundle, deny, rule, snapshot
from tests.cli import snapshots
from tests.replay.stage import Stage

from subluminal.contracts.vocabulary import Layer
from subluminal.ledger.client import ledgerd as client

EVIL = "rm\x1b[31m\u202egnp"


@pytest.fixture
def stage(own_home, monkeypatch):
    """A home with two runs in its ledger, which is up to date, so that nothing is started."""
    made = Stage(own_home, monkeypatch)
    for run_id in ("run-first", "run-second"):
        shim = made.shim([(Layer.USER, snapshot(deny("rm")))], run_id=run_id)
        for tool in ("read", "rm", "write"):
            made.call(shim, tool, {"path": "x", "key": "ghp_" + "aB3d" * 9})
    made.close_shims()
    made.home.store.connection.close()
    yield made
    made.close()


def policy_file(tmp_path, *rules, **more):
    path = tmp_path / "candidate.yaml"
    path.write_text(json.dumps(bundle(*rules, **more)))
    return str(path)


@pytest.fixture
def candidate(tmp_path):
    by_key = rule(
        "keys",
        "deny",
        deny("x")["effect"],
        args={"key_equals": {"key": "a"}},
        tool_name={"glob": ["read"]},
    )
    return policy_file(tmp_path, by_key, budget(2))


def rows_of(ran):
    *rows, last = (json.loads(line) for line in ran.out.splitlines())
    return rows, last["summary"]


def test_on_a_terminal(sub, stage, candidate):
    snapshots.check(
        "policy-replay-terminal", sub("policy", "replay", "--policy", candidate, terminal=True)
    )


def test_in_a_pipe(sub, stage, candidate):
    snapshots.check("policy-replay-pipe", sub("policy", "replay", "--policy", candidate))


def test_only_differences_as_json_unless_all_are_wanted(sub, stage, candidate):
    rows, summary = rows_of(sub("policy", "replay", "--policy", candidate, "--json"))
    assert [row["change"] for row in rows] == ["undetermined", "newly_allowed", "newly_blocked"] * 2
    assert set(rows[1]) == {
        "run_id",
        "call_id",
        "seq",
        "server_name",
        "tool_name",
        "change",
        "was",
        "now",
        "depends_on",
    }
    assert rows[2]["depends_on"] == rows[1]["call_id"]
    assert (rows[0]["doubt"], rows[0]["now"]) == ("arguments", None)
    assert (summary["runs"], summary["calls"], summary["same"]) == (2, 6, 0)
    every, again = rows_of(sub("policy", "replay", "--policy", candidate, "--json", "--all"))
    assert len(every) == 6
    assert again == summary


def test_the_policy_of_the_record_differs_in_nothing(sub, stage, tmp_path):
    own = policy_file(tmp_path, deny("rm"))
    ran = sub("policy", "replay", "--policy", own, "--fail-on", "any")
    assert ran == (0, "6 calls of 2 runs: 6 same\n", "")
    rows, summary = rows_of(sub("policy", "replay", "--policy", own, "--json"))
    assert not rows
    assert summary["same"] == 6


def test_differences_are_no_failure_unless_one_says_so(sub, stage, candidate):
    replay = ("policy", "replay", "--policy", candidate)
    assert sub(*replay).code == 0
    assert sub(*replay, "--fail-on", "changed").code == 0
    assert sub(*replay, "--fail-on", "changed", "--fail-on", "newly_allowed").code == 1
    assert sub(*replay, "--fail-on", "any", "--json").code == 1


def test_runs_are_named_by_the_end_of_their_ids(sub, stage, candidate):
    replay = ("policy", "replay", "--policy", candidate, "--json")
    rows, _ = rows_of(sub(*replay, "--run", "second"))
    assert {row["run_id"] for row in rows} == {"run-second"}
    _, summary = rows_of(sub(*replay, "--run", "run-first", "second", "--run", "run-first"))
    assert summary["runs"] == 2
    ran = sub(*replay, "--run", "nobody")
    assert ran.code == 2
    assert "there is no call or run `nobody`" in ran.err


def test_since(sub, stage, candidate):
    _, summary = rows_of(
        sub("policy", "replay", "--policy", candidate, "--json", "--since", "2030-01-01T00:00:00Z")
    )
    assert summary["calls"] == 0
    ran = sub("policy", "replay", "--policy", candidate, "--since", "soon")
    assert ran.code == 2
    assert ran.err.startswith("error: `--since`: ")


def test_an_observing_candidate_can_be_asked_as_if_it_enforced(sub, stage, tmp_path):
    observing = policy_file(tmp_path, deny("rm", "write"), mode="observe")
    replay = ("policy", "replay", "--policy", observing, "--json")
    rows, _ = rows_of(sub(*replay))
    assert [row["change"] for row in rows[:2]] == ["newly_allowed", "changed"]
    assert rows[1]["now"]["would_be"] == {
        "action": "BLOCK",
        "rule_id": "no-rm",
        "reason_code": "DENYLIST_MATCH",
    }
    rows, _ = rows_of(sub(*replay, "--mode", "guardrails"))
    assert [row["change"] for row in rows] == ["newly_blocked"] * 2


def test_the_layer_that_it_takes(sub, stage, tmp_path):
    path = policy_file(tmp_path, deny("write"))
    beside, summary = rows_of(
        sub("policy", "replay", "--policy", path, "--json", "--layer", "repository")
    )
    assert [row["tool_name"] for row in beside] == ["write", "write"]
    assert summary["replaced_others"] == 0
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**bundle(deny("write")), "policy_id": "other"}))
    ran = sub("policy", "replay", "--policy", str(other))
    assert "In 2 runs `other` replaced all policies of that time." in ran.err


def test_nothing_recorded_yet(sub, candidate):
    ran = sub("policy", "replay", "--policy", candidate)
    assert ran == (0, "", "No calls recorded yet. Start an agent with `sub run -- AGENT`.\n")
    rows, summary = rows_of(sub("policy", "replay", "--policy", candidate, "--json"))
    assert (rows, summary["calls"]) == ([], 0)


def test_a_policy_that_does_not_compile(sub, tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("policy_id: 5\n")
    assert sub("policy", "replay", "--policy", str(path)).code == 2


def test_what_servers_call_their_tools_does_not_reach_the_terminal(
    sub, own_home, monkeypatch, candidate
):
    made = Stage(own_home, monkeypatch)
    shim = made.shim([])
    for _ in range(3):
        made.call(shim, EVIL, {})
    made.close_shims()
    made.home.store.connection.close()
    ran = sub("policy", "replay", "--policy", candidate)
    made.close()
    assert "newly_blocked" in ran.out
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out


def test_missing_layers_and_missing_calls_are_told(sub, own_home, monkeypatch, candidate):
    made = Stage(own_home, monkeypatch)
    theirs = snapshot(deny("rm"), mode="control")
    shim = made.shim([])
    made.loaded(shim, [(Layer.USER, theirs), (Layer.REPOSITORY, snapshot())], with_rules=False)
    made.call(shim, "a", {})
    with shim.run.state.locked():
        shim.run.state.take_seq()
    made.call(shim, "a", {})
    made.close_shims()
    made.home.store.connection.close()
    ran = sub("policy", "replay", "--policy", candidate, "--layer", "repository")
    made.close()
    assert f"not recorded and might have refused more calls: {theirs.policy_hash[:12]}" in ran.err
    assert "1 call counted but not recorded" in ran.err


def test_what_is_only_in_journals_is_taken_in_first(sub, own_home, monkeypatch, candidate):
    """ledgerd is started on demand, as for every question to the ledger."""
    made = Stage(own_home, monkeypatch)
    shim = made.shim([])
    for _ in range(3):
        made.call(shim, "a", {})
    shim.flush()
    try:
        rows, summary = rows_of(sub("policy", "replay", "--policy", candidate, "--json"))
        assert [row["change"] for row in rows] == ["newly_blocked"]
        assert summary["calls"] == 3
        made.call(shim, "b", {})
        shim.flush()
        assert rows_of(sub("policy", "replay", "--policy", candidate, "--json"))[1]["calls"] == 4
    finally:
        client.stop(made.home.places)
        made.close()
