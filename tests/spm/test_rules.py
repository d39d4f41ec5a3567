"""Plugins that are rules, the kill switch, and who is trusted how far."""

import asyncio
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.requirements import requirement
from tests.spm.conftest import REMOVE, Bureau
from tests.trust.issued import registration

from subluminal.config.places import Places, places
from subluminal.core.controls.agents import register, revoke
from subluminal.operator.stopping import Target, stop
from subluminal.spm import (
    AgentAttestation,
    AgentIdentity,
    AgentRegistry,
    ToolIdentity,
    ToolRegistry,
    TrustContext,
    TrustEvaluator,
    command_governor,
    egress_enforcer,
    guardian,
    identity_enforcer,
    kill_switch,
    rate_limiter,
)


@pytest.fixture
def where(own_home: Path) -> Places:
    return places({"SUB_HOME": str(own_home)})


@requirement("sdk:spm-rules")
def test_rates_are_per_agent_and_per_tool(bureau: Bureau) -> None:
    limiter = rate_limiter(max_per_minute=3, max_per_minute_per_tool=2)
    security = bureau.security(REMOVE, plugins=[limiter])
    for _ in range(3):
        assert bureau.codes(security, "rm") == ["NO_REMOVE"]  # refused calls do not count
    assert [bureau.codes(security, "ls")[0] for _ in range(3)] == [
        *("DEFAULT_ALLOW", "DEFAULT_ALLOW", "RATE_LIMIT_TOOL"),
    ]
    assert bureau.codes(security, "cat") == ["DEFAULT_ALLOW"]
    limited = bureau.check(security, "cat")
    assert (limited.decision.outcome, limited.event.outcome) == ("DENY", "RATE_LIMITED")
    assert limited.decision.reasons[0].code == "RATE_LIMIT_AGENT"
    assert bureau.codes(security, "ls", agent_id="other") == ["DEFAULT_ALLOW"]
    with pytest.raises(TypeError):
        rate_limiter()


@requirement("sdk:spm-rules")
def test_who_acts_is_what_the_registry_says(bureau: Bureau, where: Places) -> None:
    register(where.state, registration(agent_id="known"))
    register(where.state, registration(agent_id="gone"))
    revoke(where.state, registration(agent_id="gone"))
    enforcer = identity_enforcer(minimum_trust_level="basic", max_delegation_depth=1)
    security = bureau.security(plugins=[enforcer])
    assert bureau.codes(security, "t", agent_id="known") == ["DEFAULT_ALLOW"]
    assert bureau.codes(security, "t", trust_level="system") == ["AGENT_UNREGISTERED"]
    assert bureau.codes(security, "t", agent_id="gone") == ["AGENT_REVOKED"]
    chain = ["a", "b"]
    found = bureau.codes(security, "t", agent_id="known", delegation_chain=chain)
    assert found == ["DELEGATION_DEPTH_EXCEEDED"]
    assert bureau.codes(security, "t", agent_id="known", delegation_chain=["a"]) == [
        "DEFAULT_ALLOW"
    ]
    assert bureau.codes(security, "t", agent_id="known", trust_level="untrusted") == [
        "INSUFFICIENT_TRUST"
    ]
    high = bureau.security(
        plugins=[identity_enforcer(require_registration=False, minimum_trust_level="verified")]
    )
    assert bureau.codes(high, "t", agent_id="known", trust_level="system") == ["INSUFFICIENT_TRUST"]


@requirement("sdk:spm-tools-too")
def test_tools_are_checked_although_agents_are(bureau: Bureau, where: Places) -> None:
    """Upstream returns before it looks at tools, if agents must be registered."""
    register(where.state, registration(agent_id="known"))
    tools = ToolRegistry([ToolIdentity(tool_name="ls"), ToolIdentity(tool_name="cat")])
    enforcer = identity_enforcer(require_tool_registration=True, tool_registry=tools)
    security = bureau.security(plugins=[enforcer])
    known: dict[str, Any] = {"agent_id": "known"}
    assert bureau.codes(security, "ls", **known) == ["DEFAULT_ALLOW"]
    assert bureau.codes(security, "rm", **known) == ["TOOL_UNREGISTERED"]
    tools.revoke("ls")
    assert bureau.codes(security, "ls", **known) == ["TOOL_REVOKED"]
    assert bureau.codes(security, "cat") == ["AGENT_UNREGISTERED"]
    with pytest.raises(TypeError, match="tool_registry"):
        identity_enforcer(require_tool_registration=True)


@requirement("sdk:spm-rules")
def test_data_that_must_stay(bureau: Bureau) -> None:
    enforcer = egress_enforcer(labels=["PHI"], tools=["send_*"])
    security = bureau.security(plugins=[enforcer])
    card = {"text": "4111 1111 1111 1111"}
    assert bureau.codes(security, "send_mail", tool_args=card) == ["EGRESS_BLOCKED"]
    assert bureau.codes(security, "send_mail", data_labels=["PHI"]) == ["EGRESS_BLOCKED"]
    assert bureau.codes(security, "send_mail", tool_args={"text": "hello"}) == ["DEFAULT_ALLOW"]
    assert bureau.codes(security, "store", tool_args=card) == ["DEFAULT_ALLOW"]
    with pytest.raises(TypeError):
        egress_enforcer(classes=())
    with pytest.raises(ValueError, match="egress"):
        egress_enforcer(tools=["["])


@requirement("sdk:spm-rules")
def test_commands(bureau: Bureau) -> None:
    """Upstream compares the text of a line: an allowed word at its start lets the rest pass."""
    governor = command_governor(
        [("ls", "allow"), ("git push*", "require_approval"), ("git *", "allow"), ("rm", "block")],
        tools=["Bash"],
    )
    security = bureau.security(plugins=[governor])

    def run(command: str) -> str:
        return bureau.codes(security, "Bash", tool_args={"command": command})[0]

    assert run("ls -l") == "DEFAULT_ALLOW"
    assert run("git status") == "DEFAULT_ALLOW"
    assert run("git push origin") == "COMMAND_APPROVAL_REQUIRED"
    assert run("rm -rf x") == "COMMAND_BLOCKED"
    assert run("ls; rm -rf x") == "COMMAND_BLOCKED"
    assert run("curl example.com") == "COMMAND_BLOCKED"
    assert bureau.codes(security, "read") == ["DEFAULT_ALLOW"]
    for wrong in ([("", "allow")], [("ls", "perhaps")]):
        with pytest.raises(ValueError, match=r"pattern|perhaps"):
            command_governor(wrong)


@requirement("sdk:spm-rules")
def test_the_guardian_sees_a_sequence_with_calls_between(bureau: Bureau) -> None:
    """Upstream compares the last calls only: one harmless call between evades it."""
    watch = guardian(sequences=[["read_secrets", "http_request"]], max_per_minute=4)
    security = bureau.security(plugins=[watch])
    for tool in ("read_secrets", "ls"):
        assert bureau.check(security, tool).allowed
    assert bureau.codes(security, "http_request") == ["SUSPICIOUS_SEQUENCE"]
    for _ in range(2):
        assert bureau.check(security, "ls").allowed
    assert bureau.codes(security, "ls") == ["FREQUENCY_SPIKE"]
    with pytest.raises(TypeError):
        guardian()


def test_the_guardian_ends_a_run_that_goes_on(bureau: Bureau) -> None:
    security = bureau.security(REMOVE, plugins=[guardian(kill_after=2)])
    found = [bureau.check(security, "rm") for _ in range(3)]
    assert [each.decision.reasons[0].code for each in found] == [
        *("NO_REMOVE", "NO_REMOVE", "AUTO_KILL"),
    ]
    assert found[2].event.outcome == "KILL_SWITCH"
    always = bureau.security(run_id="run-2", plugins=[guardian(utc_hours=(0, 24))])
    assert bureau.check(always, "ls").allowed


def test_rules_of_a_plugin_that_comes_later_hold_at_once(bureau: Bureau) -> None:
    async def scene() -> list[str]:
        security = bureau.security()

        async def code() -> str:
            params: dict[str, Any] = {"tool_name": "t", "tool_args": {}, "agent_id": "a"}
            return (await security.check_tool_call(**params)).decision.reasons[0].code

        found = [await code()]
        await security.register_plugin(identity_enforcer())
        found.append(await code())
        await security.unregister_plugin("identity-enforcer")
        return [*found, await code()]

    assert asyncio.run(scene()) == ["DEFAULT_ALLOW", "AGENT_UNREGISTERED", "DEFAULT_ALLOW"]


# The kill switch


@requirement("sdk:spm-kill-switch")
def test_a_killed_agent_is_stopped_at_every_door(bureau: Bureau, where: Places) -> None:
    switch = kill_switch()
    security = bureau.security(plugins=[switch])
    assert bureau.check(security, "t").allowed
    switch.kill("support", "too eager")
    stopped = bureau.check(security, "t")
    assert (stopped.decision.outcome, stopped.event.outcome) == ("DENY", "KILL_SWITCH")
    assert stopped.decision.reasons[0].code == "AGENT_KILL_SWITCH"
    assert bureau.check(security, "t", agent_id="other").allowed
    assert (switch.is_killed("support"), switch.is_killed("other")) == (True, False)
    listed = [sys.executable, "-m", "subluminal", "kill", "--list"]
    told = subprocess.run(listed, capture_output=True, text=True, check=True, env=os.environ)
    assert "support" in told.stdout
    assert switch.revive("support")
    assert bureau.check(security, "t").allowed
    switch.kill_all()
    assert bureau.codes(security, "t", agent_id="other") == ["GLOBAL_KILL_SWITCH"]
    assert switch.revive_all()
    assert not switch.revive_all()
    assert bureau.check(security, "t", agent_id="other").allowed


@requirement("sdk:spm-kill-switch")
def test_a_program_does_not_lift_what_a_person_stopped(bureau: Bureau, where: Places) -> None:
    switch = kill_switch(home=bureau.home)
    stop(where, Target("agent", "support"), reason="no more")
    assert not switch.revive("support")
    assert not switch.revive_all()
    assert [each.target for each in switch.get_state()] == ["support"]
    assert bureau.codes(bureau.security(), "t") == ["AGENT_KILL_SWITCH"]


# Trust


def agent(**more: Any) -> AgentIdentity:
    fields = {"agent_id": "a", "name": "A", "owner": "me", "environment": "dev", **more}
    return AgentIdentity(**fields)


@requirement("sdk:spm-trust")
@pytest.mark.parametrize(
    ("identity", "context", "score", "level"),
    [
        (agent(), TrustContext("dev"), 25, "basic"),
        (agent(trust_level="verified"), TrustContext("prod"), 40, "basic"),
        (agent(trust_level="system"), TrustContext("dev"), 100, "system"),
        (
            agent(trust_level="privileged", max_delegation_depth=1),
            TrustContext("dev", delegation_depth=2, time_of_day=3, consecutive_denials=4),
            30,
            "basic",
        ),
        (
            agent(
                trust_level="verified",
                attestation=AgentAttestation(
                    issuer="i",
                    issued_at="2020-01-01T00:00:00Z",
                    expires_at="2020-01-02T00:00:00Z",
                ),
            ),
            TrustContext("prod"),
            30,
            "basic",
        ),
        (
            agent(
                trust_level="verified",
                attestation=AgentAttestation(issuer="i", issued_at="2020-01-01T00:00:00Z"),
            ),
            TrustContext("prod"),
            50,
            "verified",
        ),
    ],
)
def test_trust_is_upstreams_sum(
    identity: AgentIdentity, context: TrustContext, score: int, level: str
) -> None:
    found = TrustEvaluator().evaluate(identity, context)
    assert (found.score, found.effective_trust) == (score, level)


@requirement("sdk:spm-trust")
def test_the_registry_is_read_only_and_forgets_the_revoked(where: Places) -> None:
    agents = AgentRegistry()
    assert agents.list_all() == []
    for name in ("a", "b"):
        register(where.state, registration(agent_id=name))
    revoke(where.state, registration(agent_id="b"))
    found = agents.get("a")
    assert found is not None
    assert (found.agent_id, found.trust_level, found.agent_type) == ("a", "privileged", "pr_agent")
    assert agents.get("b") is None
    assert (agents.is_revoked("b"), agents.is_revoked("a")) == (True, False)
    assert agents.list_all() == agents.list_by_type("pr_agent") == [found]
    assert agents.list_by_trust_level("privileged") == [found]
    assert agents.list_by_trust_level("system") == []


@requirement("sdk:spm-trust")
def test_manifests_are_verified_by_their_hash() -> None:
    text = '{"name": "ls"}'
    digest = sha256(text.encode()).hexdigest().upper()
    tools = ToolRegistry([ToolIdentity(tool_name="ls", manifest_hash=digest)])
    assert tools.verify_hash("ls", text)
    assert tools.verify_hash("ls", text.encode())
    assert not tools.verify_hash("ls", text + " ")
    assert not tools.verify_hash("rm", text)
    tools.revoke("ls")
    assert not tools.verify_hash("ls", text)
