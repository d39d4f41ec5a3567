"""Plugins that are rules, the kill switch, and who is trusted how far."""

import asyncio
import os
import subprocess
import sys
import time
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

CARD = {"text": "4111 1111 1111 1111"}


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


@requirement("sdk:spm-egress")
def test_data_that_must_stay(bureau: Bureau) -> None:
    enforcer = egress_enforcer(labels=["PHI"], tools=["send_*"])
    security = bureau.security(plugins=[enforcer])
    assert bureau.codes(security, "send_mail", tool_args=CARD) == ["EGRESS_BLOCKED"]
    assert bureau.codes(security, "send_mail", data_labels=["PHI"]) == ["EGRESS_BLOCKED"]
    assert bureau.codes(security, "send_mail", tool_args={"text": "hello"}) == ["DEFAULT_ALLOW"]
    assert bureau.codes(security, "store", tool_args=CARD) == ["DEFAULT_ALLOW"]
    with pytest.raises(TypeError):
        egress_enforcer(classes=())
    with pytest.raises(ValueError, match="egress"):
        egress_enforcer(tools=["["])


@requirement("sdk:spm-egress")
@pytest.mark.parametrize(
    ("hosts", "allowed", "refused"),
    [
        (["*.evil.example"], [], ["https://a.evil.example/x"]),
        ([], ["*.ours.example"], ["https://a.evil.example/x", "https://b.example", "", None]),
        (["*"], ["*.ours.example"], ["https://a.evil.example/x", "https://b.example"]),
    ],
)
def test_where_data_may_go(
    bureau: Bureau, hosts: list[str], allowed: list[str], refused: list[str | None]
) -> None:
    """Upstream refuses data for an allowed destination too, unless its default is to allow."""
    enforcer = egress_enforcer(hosts=hosts, allowed_hosts=allowed)
    security = bureau.security(plugins=[enforcer])
    urls = [
        "https://a.evil.example/x",
        "https://b.example",
        "https://api.ours.example/v1",
        "",
        None,
    ]
    args = [{**CARD, **({} if url is None else {"url": url})} for url in urls]
    codes = [bureau.codes(security, "post", tool_args=each)[0] for each in args]
    assert [url for url, code in zip(urls, codes, strict=True) if code == "EGRESS_BLOCKED"] == [
        url for url in urls if url in refused
    ]
    assert bureau.check(security, "post", tool_args={"url": urls[0]}).allowed


@requirement("sdk:spm-commands")
def test_commands(bureau: Bureau) -> None:
    """Upstream compares the text of a line: an allowed word at its start lets the rest pass."""
    governor = command_governor(
        [("ls", "allow"), ("git push*", "require_approval"), ("git *", "allow"), ("rm", "block")],
        tools=["Bash"],
    )
    security = bureau.security(plugins=[governor])

    def run(command: object) -> str:
        return bureau.codes(security, "Bash", tool_args={"command": command})[0]

    for allowed in (
        "ls",
        "ls -l /etc",
        ["ls", "/"],
        "git status",
        "/bin/ls && git clone https://x.y/z",
    ):
        assert run(allowed) == "DEFAULT_ALLOW", allowed
    for asked in ("git push origin", "ls; git push"):
        assert run(asked) == "COMMAND_APPROVAL_REQUIRED", asked
    for refused in ("rm -rf x", "ls; rm -rf x", "curl x.y", "lsof", "ls $(x)", "eval ls", 7):
        assert run(refused) == "COMMAND_BLOCKED", refused
    assert bureau.codes(security, "read") == ["DEFAULT_ALLOW"]
    for wrong in ([("", "allow")], [("ls", "perhaps")]):
        with pytest.raises(ValueError, match=r"pattern|perhaps"):
            command_governor(wrong)
    with pytest.raises(ValueError, match="perhaps"):
        command_governor([], default="perhaps")


@requirement("sdk:spm-commands")
def test_commands_are_allowed_or_asked_for_by_default(bureau: Bureau) -> None:
    security = bureau.security(plugins=[command_governor([("rm", "block")], default="allow")])
    assert bureau.codes(security, "Bash", tool_args={"command": "ls"}) == ["DEFAULT_ALLOW"]
    assert bureau.codes(security, "Bash", tool_args={"command": "rm x"}) == ["COMMAND_BLOCKED"]
    asking = bureau.security(plugins=[command_governor([], default="require_approval")])
    found = bureau.check(asking, "Bash", tool_args={"command": "ls"})
    assert found.decision.outcome == "REQUIRE_APPROVAL"
    assert found.decision.reasons[0].code == "COMMAND_APPROVAL_REQUIRED"


@requirement("sdk:spm-guardian")
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
    with pytest.raises(ValueError, match="kill_after"):
        guardian(max_per_minute=1, kill_after=0)


@requirement("sdk:spm-guardian")
def test_the_guardian_stops_an_agent_that_goes_on(bureau: Bureau) -> None:
    """Only what the guardian itself refuses counts, in all AgentSecurity objects of the run."""
    securities = [
        bureau.security(REMOVE, plugins=[guardian(max_per_minute=1, kill_after=3)])
        for _ in range(2)
    ]
    assert bureau.check(securities[0], "ls").allowed
    for _ in range(4):
        assert bureau.codes(securities[0], "rm") == ["NO_REMOVE"]
    for security in (*securities, securities[0]):
        assert bureau.codes(security, "ls") == ["FREQUENCY_SPIKE"]
    stopped = bureau.check(securities[1], "ls")
    assert (stopped.decision.reasons[0].code, stopped.event.outcome) == (
        "AGENT_KILL_SWITCH",
        "KILL_SWITCH",
    )
    assert "AUTO_KILL: 3 violations" in stopped.decision.reasons[0].message
    assert kill_switch().revive("support")
    assert bureau.codes(securities[1], "ls") == ["FREQUENCY_SPIKE"]


@requirement("sdk:spm-guardian")
@pytest.mark.parametrize("shift", [0, 1, 23])
def test_the_guardian_knows_the_hour(bureau: Bureau, shift: int) -> None:
    """From an hour that includes now, or from one that does not."""
    hour = time.gmtime().tm_hour
    inside = guardian(utc_hours=((hour - shift) % 24, (hour - shift + 2) % 24 or 24))
    security = bureau.security(plugins=[inside])
    code = bureau.codes(security, "ls")[0]
    if time.gmtime().tm_hour == hour:
        assert code == ("OFF_HOURS" if shift == 23 else "DEFAULT_ALLOW")
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
