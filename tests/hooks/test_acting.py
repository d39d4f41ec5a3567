"""Who acts at the hooks of a client: what proves an agent, and what revokes it."""

import pytest
from tests.requirements import requirement
from tests.shim.test_agents import PROVEN, agent_of, files_with


@pytest.fixture
def token(household, person):
    household.write_policy(PROVEN)
    person("agents", "register", "fixer", "--trust", "privileged")
    return person("agents", "attest", "fixer").strip()


@requirement("trust:run-attested")
def test_a_token_proves_the_agent_and_a_bare_name_does_not(start, household, token):
    attested = start(SUB_AGENT_ID="fixer", SUB_ATTESTATION=token)
    assert attested.before("Bash", {"command": f"echo {token}"}).is_nothing
    bare = start(session="s2", SUB_AGENT_ID="fixer")
    assert "not you" in bare.before("Bash", {"command": "ls"}).out
    known = {event["run_id"]: agent_of(event) for event in household.events("run_start")}
    assert known["s1"]["proof"]["kind"] == "attested"
    assert known["s2"]["proof"] == {"kind": "none"}
    attested.end()
    household.wait_event("run_end", run_id="s1")
    assert files_with(household, token) == []


@requirement("trust:run-revoked")
def test_a_revoked_agent(start, household, person, token):
    agent = start(SUB_AGENT_ID="fixer", SUB_ATTESTATION=token)
    assert agent.before("Bash", {"command": "ls"}).is_nothing
    person("agents", "revoke", "fixer")
    assert "revoked" in agent.before("Bash", {"command": "ls"}, call="t2").out
    decided = household.events("tool_call_decision")[-1]["decision"]
    assert decided["explain"]["reason_code"] == "AGENT_REVOKED"


def test_the_clients_own_tools_are_built_in(agent, household):
    household.write_policy(
        PROVEN.replace("match: {}", "match: {tool_provider: [built-in]}").replace(
            "trust_level_min: privileged", "tool_provider: [mcp]"
        )
    )
    assert "not you" in agent.before("Bash", {"command": "ls"}).out
    assert agent.before("mcp__git__status", {}, call="t2").is_nothing
