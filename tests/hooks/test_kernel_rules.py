"""Kernel rules at a hook: the pack decides as at a shim, and the client may ask its own person."""

from tests.packs.desk import desk_environment
from tests.shim.test_kernel_rules import POLICY


def test_a_pack_decides_what_a_hook_forwards(start, household, tmp_path):
    household.write_policy(POLICY.format(state=""))
    agent = start(**desk_environment(tmp_path / "userbase"))
    assert agent.before("pay", {"amount": 5}, "t1").is_nothing
    agent.after("pay", {"amount": 5}, "t1")
    refused = agent.before("pay", {"amount": 5000}, "t2").json["hookSpecificOutput"]
    assert refused["permissionDecision"] == "deny"
    assert (
        "the pack desk refuses this call: That is too much."
        in (refused["permissionDecisionReason"])
    )
    # Not the client's own prompt: it may be told to answer itself.
    asked = agent.before("pay", {"amount": 300}, "t3").json["hookSpecificOutput"]
    assert asked["permissionDecision"] == "deny"
    assert (
        "the pack desk leaves this to a supervisor: A supervisor pays this."
        in asked["permissionDecisionReason"]
    )
    kinds = [each["decision"]["kernel"]["kind"] for each in household.events("tool_call_decision")]
    assert kinds == ["EXECUTE", "REFUSE", "ESCALATE"]
