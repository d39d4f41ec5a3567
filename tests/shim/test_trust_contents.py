"""Contents, sequences and ends of policies through real shims: what passes, and what is on record."""

import json
import time

import pytest
from tests.requirements import requirement
from tests.shim.household import wait_until
from tests.shim.test_shared_runs import leave, start_all

from subluminal.clock import rfc3339

HEAD = """policy_id: p
version: "1"
mode: guardrails
defaults: {decision_on_error: BLOCK}
selectors: {}
"""


def text(*rules, head=HEAD):
    return head + "rules:\n" + "".join(f"  - {json.dumps(each)}\n" for each in rules)


def rule(kind, effect, match=None, rule_id="r"):
    match = match or {}
    return {"rule_id": rule_id, "kind": kind, "enabled": True, "severity": "warn", "match": match, "effect": effect}  # fmt: skip


def sequence(*pattern, **more):
    return rule("sequence", {"sequence": {"pattern": list(pattern), "on_match": "BLOCK", **more}})


def deny(match, **more):
    return rule(
        "deny", {"action": "BLOCK", "reason_code": "NO", "message": "not this", **more}, match
    )


def refusal(answer):
    return answer["error"]["data"]["subluminal"]


@requirement("trust:sequence")
def test_one_harmless_call_between_does_not_evade_a_sequence(household):
    """Upstream compares the last calls only. The refused call never reaches the server."""
    household.write_policy(text(sequence("echo", "slow")))
    shim = household.start().ready()
    assert shim.code("echo") == 0
    assert shim.code("other") == 0
    found = refusal(shim.call("slow"))
    assert (found["reason_code"], found["rule_id"]) == ("SEQUENCE_MATCHED", "r")
    assert "echo, slow" in found["summary"]
    assert shim.code("slow") == -32081
    leave(shim)
    assert len(household.executed()) == 2


@requirement("trust:sequence-shared")
def test_a_sequence_is_one_for_all_shims_of_a_run(household):
    """One shim is killed with SIGKILL between the two calls; what it forwarded counts."""
    household.write_policy(text(sequence("echo", "slow")))
    first, second = start_all(household, 2)
    assert first.code("echo") == 0
    first.kill()
    first.wait()
    assert refusal(second.call("slow"))["reason_code"] == "SEQUENCE_MATCHED"
    leave(second)


@requirement("trust:sequence-shared")
def test_shims_that_race_never_complete_a_sequence_together(household):
    """Of [echo, echo, echo] exactly two calls pass, however many shims ask at once."""
    household.write_policy(text(sequence("echo", "echo", "echo")))
    shims = start_all(household, 3)
    asked = {shim: [shim.ask("echo", {"n": n}) for n in range(40)] for shim in shims}
    codes = [shim.answer(each).get("error", {}).get("code", 0) for shim in shims for each in asked[shim]]  # fmt: skip
    assert codes.count(0) == 2
    leave(*shims)
    assert len(household.executed()) == 2


@requirement("trust:data-classes", "trust:data-secrets")
@pytest.mark.parametrize(
    ("wanted", "value"),
    [
        ("PCI", "4111 1111 1111 1111"),
        ("PII", "kim@example.com"),
        ("PII.ssn", "219-09-9999"),
        ("SECRET", "AKIA" + "QZ7XKMPLRTVWYBNC"),
    ],
)
def test_data_in_arguments_is_refused(household, wanted, value):
    household.write_policy(text(deny({"data_any": [wanted]})))
    shim = household.start().ready()
    assert shim.code("echo", {"deep": [{"x": "nothing of that kind"}]}) == 0
    assert shim.code("echo", {"deep": [{"x": f"see {value}, please"}]}) == -32081
    leave(shim)


@requirement("trust:text-values")
def test_texts_in_arguments_are_refused(household):
    household.write_policy(text(deny({"text": {"any_of": ["drop table"]}})))
    shim = household.start().ready()
    assert shim.code("echo", {"drop table": ["DROP", "TABLE"]}) == 0
    assert shim.code("echo", {"q": {"sql": "Drop Table users"}}) == -32081
    leave(shim)


@requirement("trust:constraints")
def test_constraints_are_told_and_recorded_and_masked(household):
    secret = "AKIA" + "QZ7XKMPLRTVWYBNC"
    told = {"max_rows": 100, "key": secret}
    passes = {"action": "ALLOW", "reason_code": "OK", "message": "fine", "constraints": told}
    household.write_policy(
        text(
            rule("allow", passes, {"tool_name": {"glob": ["echo"]}}),
            {**deny({}, constraints=told), "rule_id": "no"},
        )
    )
    shim = household.start().ready()
    assert shim.code("echo") == 0
    answer = shim.call("other")
    masked = {"max_rows": 100, "key": "[REDACTED:aws_access_key_id]"}
    assert refusal(answer)["constraints"] == masked
    assert '"max_rows":100}.' in answer["error"]["message"]
    leave(shim)
    decisions = [each["decision"] for each in household.events("tool_call_decision")]
    assert [each["constraints"] for each in decisions] == [masked, masked]
    assert secret not in json.dumps(decisions)


@requirement("trust:policy-expires")
def test_a_policy_ends_while_a_shim_runs(household):
    """The decision changes by the clock alone: no reload, no new file."""
    ends_ms = time.time_ns() // 1_000_000 + 4_000
    household.write_policy(text(head=HEAD + f'expires_at: "{rfc3339(ends_ms)}"\n').replace("rules:\n", "rules: []\n"))  # fmt: skip
    shim = household.start().ready()
    assert shim.code("echo") == 0
    assert wait_until(lambda: shim.code("echo") == -32081, "the policy to end")
    found = refusal(shim.call("echo"))
    assert (found["action"], found["reason_code"]) == ("BLOCK", "POLICY_EXPIRED")
    assert time.time_ns() // 1_000_000 >= ends_ms
    leave(shim)


@requirement("trust:policy-expires")
def test_a_policy_that_has_ended_before_the_start_refuses(household):
    household.write_policy(text(head=HEAD + 'expires_at: "2020-01-01T00:00:00Z"\n').replace("rules:\n", "rules: []\n"))  # fmt: skip
    shim = household.start().ready()
    assert refusal(shim.call("echo"))["reason_code"] == "POLICY_EXPIRED"
    leave(shim)
    assert household.executed() == []
