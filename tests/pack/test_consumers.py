"""Section 0 of the Pack for those who read events and policies: `sub ingest`, `sub policy`."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.policies import budget, bundle, deny, rule
from tests.pack.commands import sub
from tests.pack.story import Story
from tests.requirements import requirement

FIELDS_OF_A_BUNDLE = {
    "policy_id": "whole",
    "version": "2025-12-15",
    "mode": "guardrails",
    "defaults": {"decision_on_error": "ALLOW", "fail_open_read_tools": True},
    "description": "every field of the Pack",
    "owner": "security",
    "created_at": "2025-12-15T12:34:56Z",
    "selectors": {
        "env": ["ci", "prod"],
        "agent_id": ["fixer"],
        "client": ["claude"],
        "workload": {
            "namespace": ["n"],
            "service_account": ["s"],
            "labels": {"team": "a"},
            "repo": ["acme/shop"],
            "branch": ["main"],
        },
    },
}
MATCH = {
    "server_name": {"glob": ["git*"], "regex": ["^linear$"]},
    "tool_name": {"glob": ["*"], "regex": ["."]},
    "risk_class": ["write_like"],
    "args": {
        "has_keys": ["a"],
        "key_equals": {"b": "c"},
        "key_in": {"d": [1, 2]},
        "numeric_range": {"e": {"min": 1, "max": 2}},
    },
}
EFFECTS: dict[str, dict[str, Any]] = {
    "tag": {"tag": {"add_risk_class": ["write_like"]}},
    "allow": {"action": "ALLOW", "reason_code": "OK", "message": "fine"},
    "deny": {"action": "BLOCK", "reason_code": "NO", "message": "not that"},
    "budget": {
        "budget": {
            "scope": "server_tool",
            "limit_calls": 3,
            "limit_cost_units": 9,
            "cost_units_per_call": 2,
            "on_exceed": "REJECT_WITH_HINT",
            "hint_text": "enough",
        }
    },
    "rate_limit": {
        "rate_limit": {
            "scope": "run",
            "capacity": 5,
            "refill_tokens": 1,
            "refill_period_ms": 1000,
            "cost_tokens_per_call": 2,
            "on_limit": "THROTTLE",
            "backoff_ms": 50,
            "hint_text": "slower",
        }
    },
    "breaker": {
        "breaker": {
            "scope": "tool",
            "error_threshold": 3,
            "window_ms": 1000,
            "repeat_threshold": 4,
            "repeat_window_ms": 2000,
            "on_trip": "TERMINATE_RUN",
            "terminate_code": "LOOP",
            "hint_text": "stop",
        }
    },
    "dedupe": {
        "dedupe": {
            "scope": "run",
            "window_ms": 1000,
            "key": "args_hash",
            "on_duplicate": "BLOCK",
            "hint_text": "once",
        }
    },
}


@requirement("0.2:unknown-fields", "0.2:unknown-types", "1.3.1:missing-workload")
def test_what_a_later_version_adds_is_no_obstacle(story: Story, home: Path) -> None:
    lines = []
    for line in story.lines:
        event = {**json.loads(line), "added_later": {"x": 1}}
        if "call" in event:
            event["call"]["added_later"] = True
        event.pop("workload", None)
        lines.append(json.dumps(event))
    novel = {**json.loads(story.lines[0]), "type": "added_later"}
    novel["source"] = {**novel["source"], "n": len(lines) + 1}
    taken = sub(home, "ingest", "-", stdin="\n".join([*lines, json.dumps(novel)]).encode())
    assert taken.returncode == 0, taken.stderr
    rows = sub(home, "query", "calls", "--json", "--limit", "100")
    recorded = [json.loads(line) for line in rows.stdout.splitlines()]
    assert len(recorded) == len(story.events("tool_call_start"))
    assert {row["decision"] for row in recorded} >= {"ALLOW", "BLOCK", "THROTTLE"}


@requirement("0.2:unknown-rule-kinds")
def test_a_rule_of_an_unknown_kind_is_an_error_with_its_line(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(bundle(rule("x", "denny", {}), deny("rm")), indent=1))
    for command in ("lint", "compile"):
        ran = sub(home, "policy", command, str(file))
        assert ran.returncode in (1, 2), command
        assert b"denny" in ran.stdout + ran.stderr
        assert b"did you mean `deny`?" in ran.stdout + ran.stderr


@requirement("2.1:bundle-fields", "2.2:selector-fields", "2.3:rule-fields", "2.4:match-fields")
@requirement("2.5:effect-fields")
def test_every_field_of_the_pack_is_taken_and_kept(tmp_path: Path, home: Path) -> None:
    rules = [
        rule(f"the-{kind}", kind, effect, **({} if kind == "tag" else MATCH))
        for kind, effect in EFFECTS.items()
    ]
    file = tmp_path / "policy.json"
    file.write_text(json.dumps({**FIELDS_OF_A_BUNDLE, "rules": rules}))
    ran = sub(home, "policy", "compile", str(file))
    assert ran.returncode == 0, ran.stderr
    snapshot = json.loads(ran.stdout)
    for name in ("policy_id", "version", "mode", "defaults", "selectors"):
        assert _keeps(snapshot[name], FIELDS_OF_A_BUNDLE[name]), name
    assert [made["kind"] for made in snapshot["rules"]] == list(EFFECTS)
    for made, written in zip(snapshot["rules"], rules, strict=True):
        assert _keeps(made["effect"], written["effect"]), written
        assert made["rule_id"] == written["rule_id"]
        assert made["severity"] == written["severity"]
    assert _keeps(snapshot["rules"][-1]["match"]["args"], MATCH["args"])


@requirement("0.2:defaults", "2.6:snapshot")
def test_defaults_of_what_is_left_out_are_in_the_snapshot(tmp_path: Path, home: Path) -> None:
    spent = {"scope": "run", "limit_calls": 1, "on_exceed": "BLOCK"}
    rate = {
        "scope": "run",
        "capacity": 1,
        "refill_tokens": 1,
        "refill_period_ms": 1,
        "on_limit": "BLOCK",
    }
    file = tmp_path / "policy.json"
    rules = [
        rule("b", "budget", {"budget": spent}),
        rule("r", "rate_limit", {"rate_limit": rate}),
    ]
    file.write_text(json.dumps(bundle(*rules)))
    snapshot = json.loads(sub(home, "policy", "compile", str(file)).stdout)
    assert snapshot["defaults"]["fail_open_read_tools"] is False
    first, second = snapshot["rules"]
    assert first["effect"]["budget"]["cost_units_per_call"] == 1
    assert second["effect"]["rate_limit"]["cost_tokens_per_call"] == 1


@requirement("2.3:rule-fields")
def test_a_rule_that_is_not_enabled_is_not_compiled(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(bundle({**deny("rm"), "enabled": False}, budget(1))))
    snapshot = json.loads(sub(home, "policy", "compile", str(file)).stdout)
    assert [made["rule_id"] for made in snapshot["rules"]] == ["budget"]


@pytest.mark.parametrize("where", ["bundle", "selectors", "defaults", "rule", "match", "effect"])
@requirement("2.1:bundle-fields", "2.2:selector-fields", "2.3:rule-fields", "2.4:match-fields")
@requirement("2.5:effect-fields")
def test_a_misspelt_field_is_an_error(tmp_path: Path, home: Path, where: str) -> None:
    policy = bundle(deny("rm"))
    one = policy["rules"][0]
    places = {
        "bundle": policy,
        "selectors": policy["selectors"],
        "defaults": policy["defaults"],
        "rule": one,
        "match": one["match"],
        "effect": one["effect"],
    }
    places[where]["no_such_field"] = 1
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(policy))
    ran = sub(home, "policy", "lint", str(file))
    assert ran.returncode == 1
    assert b"no_such_field" in ran.stdout + ran.stderr


def _keeps(made: Any, written: Any) -> bool:
    """Whether everything that was written is in what was made of it."""
    if isinstance(written, dict):
        return all(name in made and _keeps(made[name], value) for name, value in written.items())
    return bool(made == written)
