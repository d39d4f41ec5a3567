"""An agent inside of a program: the host is given its token, and rules go by what that proves."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.policies import bundle, rule
from tests.adapters.records import events_of
from tests.trust.issued import registration

from subluminal.canonical import args_hash, encode
from subluminal.clock import now
from subluminal.config.places import Places, places
from subluminal.contracts.call import BUILT_IN, ToolCall
from subluminal.contracts.vocabulary import Transport, TrustLevel
from subluminal.core.controls.agents import register
from subluminal.core.host import Host
from subluminal.core.runs.opening import ALONE, Sharing
from subluminal.trust.home_key import home_key
from subluminal.trust.home_tokens import make_token
from subluminal.wiring import open_host

WITHIN_S = 30.0
THREADS = Sharing(threads=True)
ALLOW = {"action": "ALLOW", "reason_code": "PROVEN", "message": "welcome"}
DENY = {"action": "BLOCK", "reason_code": "DENIED", "message": "not you"}


@pytest.fixture
def where(own_home: Path) -> Places:
    return places({"SUB_HOME": str(own_home)})


@pytest.fixture(params=[ALONE, THREADS], ids=["alone", "threads"])
def sharing(request: pytest.FixtureRequest) -> Sharing:
    found: Sharing = request.param
    return found


@pytest.fixture
def opened(sharing: Sharing, where: Places, tmp_path: Path) -> Iterator[Any]:
    """Opens hosts that close with the test."""
    hosts: list[Host] = []

    def opens(*rules: dict[str, Any], **options: Any) -> Host:
        file = tmp_path / "policy.json"
        file.write_bytes(encode(bundle(*rules)))
        environ = {"SUB_RUN_ID": "r", "SUB_AGENT_ID": "fixer", **options.pop("environ", {})}
        host = open_host(
            where, environ=environ, policy=str(file), cwd=str(tmp_path), sharing=sharing, **options
        )
        hosts.append(host)
        host.tick(0, force=True)
        host.await_policies(WITHIN_S)
        return host

    yield opens
    for host in hosts:
        host.close()


def allow(**match: Any) -> dict[str, Any]:
    return rule("proven", "allow", ALLOW, **match)


OTHERS = rule("others", "deny", DENY)


def action(host: Host, **fields: Any) -> str:
    host.tick(time.monotonic_ns() // 1_000_000)
    call = ToolCall(
        server_name="python",
        tool_name="read",
        args={},
        args_hash=args_hash({}),
        bytes_in=1,
        transport=Transport.IN_PROCESS,
        provider=BUILT_IN,
        **fields,
    )
    ruling = host.begin(call, b"{}")
    host.release(ruling.enforcer)
    return ruling.decision.action.value


def token(where: Places, ttl_ms: int = 60_000, **more: Any) -> str:
    key = home_key(where.state)
    return make_token(key, "fixer", now_ms=now().wall_ms, ttl_ms=ttl_ms, **more)


def test_a_token_that_a_program_gives(opened: Any, where: Places) -> None:
    register(where.state, registration())
    shown = token(where)
    privileged = allow(trust_level_min="privileged", agent_roles_any=["deployer"])
    assert action(opened(privileged, OTHERS, attestation=shown)) == "ALLOW"
    assert action(opened(privileged, OTHERS, environ={"SUB_RUN_ID": "bare"})) == "BLOCK"
    told = encode(events_of(Path(where.home)))
    assert shown.encode() not in told
    assert b'"attested"' in told


def test_a_token_is_masked_in_what_is_recorded(opened: Any, where: Places) -> None:
    register(where.state, registration())
    shown = token(where)
    host = opened(allow(), attestation=shown)
    assert shown not in host.previewer.safe(f"it is {shown}")


def test_the_provider_of_a_tool(opened: Any) -> None:
    assert action(opened(allow(tool_provider=["built-in"]), OTHERS)) == "ALLOW"


def test_what_a_bare_name_says_only_tightens(opened: Any, where: Places) -> None:
    """The type and the roles of an agent that is not proven are claims of its name."""
    register(where.state, registration())
    no_pr_agents = rule("no-pr", "deny", DENY, agent_type=["pr_agent"])
    assert action(opened(no_pr_agents)) == "BLOCK"
    deployers = allow(agent_roles_any=["deployer"])
    assert action(opened(deployers, OTHERS)) == "BLOCK"


def test_a_token_for_one_run(opened: Any, where: Places) -> None:
    register(where.state, registration())
    shown = token(where, run_id="r")
    privileged = allow(trust_level_min="privileged")
    host = opened(privileged, OTHERS, attestation=shown)
    assert action(host) == "ALLOW"
    other = opened(privileged, OTHERS, attestation=shown, environ={"SUB_RUN_ID": "other"})
    assert action(other) == "BLOCK"


def test_quiet_hours_count_if_a_person_says_so(
    opened: Any, where: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(where.state, registration(trust_level=TrustLevel.PRIVILEGED))
    monkeypatch.setattr(time, "localtime", lambda: time.struct_time((2026, 1, 1, 3, *[0] * 5)))
    privileged = allow(trust_level_min="privileged")
    shown = token(where)
    assert action(opened(privileged, OTHERS, attestation=shown)) == "ALLOW"
    Path(where.settings).write_text("[trust]\nquiet_hours = true\n")
    os.utime(where.settings, (1, 1))
    host = opened(privileged, OTHERS, attestation=shown)
    deadline = time.monotonic() + WITHIN_S
    while action(host) == "ALLOW":
        assert time.monotonic() < deadline


@pytest.mark.parametrize("sharing", [THREADS], indirect=True, ids=["threads"])
def test_a_child_of_a_program_is_proven_too(opened: Any, where: Places) -> None:
    """A forked child does not wait for a helper of its parent."""
    register(where.state, registration())
    host = opened(allow(trust_level_min="privileged"), OTHERS, attestation=token(where))
    assert action(host) == "ALLOW"
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if action(host) == "ALLOW" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
