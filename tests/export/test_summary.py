"""The summary counts a run from its events alone."""

import pytest
from tests.export.policies import loaded
from tests.export.shims import Shim, ref

from subluminal.export.ordering import ordered
from subluminal.export.summary import MAX_VIOLATIONS, summarise
from subluminal.export.violations import Demands, Strict


def summary_of(*shims):
    return summarise(ordered(shims))


def test_nothing():
    found = summarise([]).as_dict()
    assert (found["events"], found["decisions"], found["status"]) == (0, {}, None)
    assert found["verdict"] == {"holds": True, "because": []}
    assert found["latency_ms"] == {"count": 0}


def test_a_lost_call_is_an_error_whose_outcome_is_unknown():
    shim = Shim("a", "files")
    shim.start_run()
    shim.call(1, "read", status="ERROR", error="unknown", latency_ms=0)
    shim.call(2, "read", status="CANCELLED", error="unknown", latency_ms=7)
    found = summary_of(shim).as_dict()
    assert found["statuses"] == {"CANCELLED": 1, "UNKNOWN": 1}
    assert found["servers"]["files"]["errors"] == 2
    assert found["latency_ms"] == {"count": 1, "p50": 7, "p95": 7, "p99": 7, "max": 7}


def test_totals_by_decision_rule_server_and_tool():
    shim, other = Shim("a", "files"), Shim("b", "git")
    shim.start_run()
    shim.call(1, "read", latency_ms=4)
    shim.call(2, "read", status="ERROR", latency_ms=10)
    shim.begin(3, "write", action="BLOCK", rule_id="no", severity="critical", reason_code="NO")
    other.begin(4, "push", action="THROTTLE", rule_id="slow", reason_code="SLOW")
    other.begin(5, "push")
    shim.end_run()
    found = summary_of(shim, other).as_dict()
    assert found["decisions"] == {"ALLOW": 3, "THROTTLE": 1, "BLOCK": 1}
    assert found["statuses"] == {"OK": 1, "ERROR": 1, "UNKNOWN": 1}
    assert found["reasons"] == {"DEFAULT_ALLOW": 3, "NO": 1, "SLOW": 1}
    assert found["servers"] == {
        "files": {"calls": 3, "refused": 1, "throttled": 0, "errors": 1},
        "git": {"calls": 2, "refused": 0, "throttled": 1, "errors": 0},
    }
    assert list(found["tools"]) == ["files/read", "files/write", "git/push"]
    assert found["tools"]["files/read"]["latency_ms"] == {
        "count": 2,
        "p50": 4,
        "p95": 10,
        "p99": 10,
        "max": 10,
    }
    assert [(row["rule_id"], row["calls"], row["violations"]) for row in found["rules"]] == [
        ("no", 1, 1),
        ("slow", 1, 1),
    ]
    assert [(row["seq"], row["kind"]) for row in found["violations"]] == [
        (3, "refused"),
        (4, "throttled"),
    ]


def test_violations_are_all_counted_and_many_listed():
    shim = Shim("a")
    for seq in range(1, MAX_VIOLATIONS + 6):
        shim.begin(seq, action="BLOCK", rule_id="no", reason_code="NO")
    found = summary_of(shim).as_dict()
    assert found["violations_total"] == MAX_VIOLATIONS + 5
    assert len(found["violations"]) == MAX_VIOLATIONS
    assert found["violations"][0]["seq"] == 1


def test_the_verdict_says_why():
    shim = Shim("a")
    shim.start_run(strict="refused")
    shim.begin(1, action="BLOCK", rule_id="no", reason_code="NO")
    load = {"layer": "repository", "ok": False, "file": "p.yaml", "problem": "no rules"}
    shim.emit("policy_loaded", load=load)
    shim.emit("shim_health", health={"state": "degraded", "events_lost": 2})
    shim.end_run("TERMINATED")
    assert summary_of(shim).verdict() == {
        "strict": "refused",
        "holds": False,
        "because": [
            "1 violation",
            "the run was terminated",
            "the policy `p.yaml` could not be loaded: no rules",
            "2 events could not be recorded",
        ],
    }


def test_the_same_run_without_demands_holds():
    shim = Shim("a")
    shim.start_run()
    shim.begin(1, action="BLOCK", rule_id="no", reason_code="NO")
    shim.end_run("TERMINATED")
    assert summary_of(shim).verdict() == {"holds": True, "because": []}


def test_rules_that_did_nothing_are_listed_too():
    shim = Shim("a")
    snapshot = loaded(shim, "quiet", "loud")
    shim.begin(
        1,
        action="BLOCK",
        rule_id="loud",
        reason_code="NO",
        policy=ref(snapshot.policy_id, snapshot.policy_hash),
    )
    rows = summary_of(shim).rules()
    assert [(row.rule_id, row.kind, row.calls, row.violations) for row in rows] == [
        ("quiet", "deny", 0, 0),
        ("loud", "deny", 1, 1),
    ]


def test_an_observing_layers_rule_is_found_in_its_own_policy():
    """The decision names the layer that decided, not the one that would have."""
    shim = Shim("a")
    loaded(shim, "watch", policy_id="observer", layer="user")
    strict = loaded(shim, "keep")
    observed = {"action": "BLOCK", "rule_id": "watch", "severity": "warn", "reason_code": "NO"}
    shim.begin(1, would_be=observed, policy=ref(strict.policy_id, strict.policy_hash))
    rows = summary_of(shim).rules()
    assert [(row.policy_id, row.rule_id, row.calls) for row in rows] == [
        ("observer", "watch", 1),
        ("p", "keep", 0),
    ]


class TestGaps:
    """A strict run whose record does not show that the policy held did not hold to it."""

    def because(self, shim, demands=None):
        return summarise(ordered([shim]), demands).verdict()["because"]

    def strict(self):
        shim = Shim("a")
        shim.start_run(strict="refused")
        return shim

    def test_no_record_at_all(self):
        verdict = summarise([], Demands(Strict.REFUSED)).verdict()
        assert verdict["because"] == ["the record lacks its run_start or run_end event"]

    def test_a_run_without_its_end(self):
        assert self.because(self.strict()) == ["the record lacks its run_start or run_end event"]

    def test_calls_that_are_counted_and_not_recorded(self):
        shim = self.strict()
        shim.call(1)
        shim.end_run(calls_total=3)
        assert self.because(shim) == ["missing from the record: 2 calls"]

    def test_a_killed_shim_may_have_counted_one(self):
        shim = self.strict()
        shim.health("killed")
        shim.end_run(calls_total=1)
        assert self.because(shim) == []

    def test_a_line_that_was_removed_or_changed(self):
        shim = self.strict()
        shim.call(1)
        shim.end_run(calls_total=1)
        del shim.lines[3]
        assert self.because(shim) == ["the record of shim `a` was changed"]
        shim = self.strict()
        shim.end_run()
        shim.lines[0] = shim.lines[0].replace(b"fixer", b"other")
        assert self.because(shim) == ["the record of shim `a` was changed"]
        shim = self.strict()
        shim.health("spawned")
        shim.end_run()
        del shim.lines[0]
        assert "the record of shim `a` was changed" in self.because(shim, Demands(Strict.REFUSED))

    def test_lines_that_are_no_events(self):
        shim = self.strict()
        shim.emit("tool_call_decision", call={})
        shim.end_run()
        assert self.because(shim) == ["1 line of the record cannot be read"]

    def test_what_was_demanded_is_not_for_an_agent_to_say(self):
        shim, forged = self.strict(), Shim("b")
        shim.begin(1, action="BLOCK", rule_id="no", reason_code="NO")
        shim.end_run(calls_total=1)
        forged.start_run()
        lines = list(ordered([shim, forged]))
        assert summarise(lines, Demands(Strict.REFUSED)).verdict()["because"] == ["1 violation"]


def test_the_last_end_counts_whoever_wrote_it():
    first, second = Shim("a"), Shim("b")
    first.end_run("SUCCEEDED", ended_at="2026-01-01T00:00:08.000Z")
    second.end_run("FAILED", ended_at="2026-01-01T00:00:07.000Z")
    assert summary_of(first, second).as_dict()["status"] == "SUCCEEDED"


@pytest.mark.parametrize(
    "text",
    [
        "<b>[x](http://evil.example)",
        "",
        "2026-99-01T00:00:00Z",
        "2026-01-01",
        "٢٠٢٦-01-01T00:00:00Z",
    ],
)
def test_an_invalid_time_is_left_out(text):
    """Reports show times as they are, and their schemas want real ones."""
    shim = Shim("a")
    shim.emit("run_start", run={"started_at": text, "mode": "guardrails", "policy": ref()})
    shim.end_run(ended_at=text)
    found = summarise(ordered([shim])).as_dict()
    assert (found["started_at"], found["ended_at"], found["status"]) == (None, None, "SUCCEEDED")


@pytest.mark.parametrize("text", ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123456+02:00"])
def test_a_time_of_another_program(text):
    shim = Shim("a")
    shim.end_run(ended_at=text)
    assert summarise(ordered([shim])).as_dict()["ended_at"] == text
