"""Lines of `sub tail`: an event that tells nothing new has none."""

import io

from tests.contracts.samples import EVENTS

from subluminal.cli.output import Output
from subluminal.cli.screens.events import EventLines


def loaded(policy_hash, run_id="r", layer="user"):
    return {
        "type": "policy_loaded",
        "ts": "2026-01-01T00:00:00.000Z",
        "run_id": run_id,
        "policy": {"policy_id": "p", "policy_version": "1", "policy_hash": policy_hash},
        "load": {"ok": True, "layer": layer, "mode": "guardrails"},
    }


def test_a_policy_is_told_once_per_run_not_by_every_shim():
    lines = EventLines(Output(io.StringIO(), io.StringIO()))
    told = [
        lines.line(event, {}) is not None
        for event in (
            loaded("a"),
            loaded("a"),
            loaded("a", layer="repository"),
            loaded("a", run_id="other"),
            loaded("b"),
            loaded("a"),
        )
    ]
    assert told == [True, False, True, True, True, True]


def test_a_refused_policy_is_told_each_time():
    lines = EventLines(Output(io.StringIO(), io.StringIO()))
    refused = loaded("a")
    del refused["policy"]
    refused["load"] = {"ok": False, "layer": "user", "problem": "no rules"}
    assert "no rules" in lines.line(refused, {})
    assert "no rules" in lines.line(refused, {})


def test_a_rule_that_asks_a_pack_is_told_with_the_pack_s_answer():
    """A kernel rule at any door: the level, the decision of the pack and the rule in one line."""
    lines = EventLines(Output(io.StringIO(), io.StringIO()))
    decision = {
        "action": "BLOCK",
        "rule_id": "shell",
        "severity": "warn",
        "explain": {"summary": "the pack shell refuses this call", "reason_code": "risky"},
        "kernel": {"kind": "REFUSE", "refusal_code": "risky", "taint": "UNTRUSTED"},
    }
    event = {
        "type": "tool_call_decision",
        "ts": "2026-01-01T00:00:00.000Z",
        "run_id": "r",
        "decision": decision,
    }
    facts = {"server": "@claude", "tool": "Bash"}
    assert lines.line(event, facts).endswith(
        "BLOCK      @claude/Bash UNTRUSTED  REFUSE risky  shell: the pack shell refuses this call"
    )


def test_a_released_intent_is_told_with_who_and_why():
    lines = EventLines(Output(io.StringIO(), io.StringIO()))
    line = lines.line({**EVENTS["intent_released"], "run_id": "r"}, {})
    assert line is not None
    assert "RELEASED   pix.charge.refund 000000000000 by ada: the bank has no such refund" in line


def test_a_changed_agent_is_told_with_who_and_why():
    lines = EventLines(Output(io.StringIO(), io.StringIO()))
    changed = {**EVENTS["agent_changed"], "run_id": "r"}
    said = "AGENT      fixer: verified, unattested basic, by kim: it fixes the build"
    assert said in str(lines.line(changed, {}))
    revoked = {**changed, "agent": {**changed["agent"], "state": "revoked"}}
    assert "REVOKED    fixer by kim: it fixes the build" in str(lines.line(revoked, {}))


def test_a_resolved_agent_is_told_with_its_trust_and_proof():
    lines = EventLines(Output(io.StringIO(), io.StringIO()))
    resolved = {**EVENTS["agent_resolved"], "run_id": "r"}
    assert "AGENT      fixer from call 5 on: verified, proof attested" in str(
        lines.line(resolved, {})
    )
    proof = {"kind": "none", "problem": "the token has expired"}
    lost = {**resolved, "agent": {**resolved["agent"], "proof": proof}}
    assert "proof none: the token has expired" in str(lines.line(lost, {}))


def test_an_agent_is_told_once_per_run_not_by_every_shim():
    lines = EventLines(Output(io.StringIO(), io.StringIO()))
    resolved = {**EVENTS["agent_resolved"], "run_id": "r"}
    other = {**resolved, "agent": {**resolved["agent"], "trust_level": "basic"}}
    events = (resolved, {**resolved, "seq": 9}, {**resolved, "run_id": "s"}, other, resolved)
    assert [lines.line(event, {}) is not None for event in events] == [
        True,
        False,
        True,
        True,
        True,
    ]


def test_a_start_tells_the_trust_and_only_changes_are_told_after_it():
    lines = EventLines(Output(io.StringIO(), io.StringIO()))
    resolved = {**EVENTS["agent_resolved"], "run_id": "r"}
    run = {**EVENTS["run_start"]["run"], "agent": resolved["agent"]}
    start = {**EVENTS["run_start"], "run_id": "r", "run": run}
    assert " (verified, proof attested), client " in str(lines.line(start, {}))
    assert lines.line(resolved, {}) is None
    other = {**resolved, "agent": {**resolved["agent"], "trust_level": "basic"}}
    assert "from call 5 on: basic" in str(lines.line(other, {}))
