"""Which run, which agent, which environment: scopes, delegation, and what children inherit."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.policies import budget, bundle, deny, rule
from tests.adapters.records import calls_of, events_of
from tests.adapters.wire import Wire, upstream
from tests.requirements import requirement
from tests.sdk.conftest import Office
from tests.trust.issued import registration

from subluminal import Guard
from subluminal.adapters.in_process.guarding.calls import GuardedCall
from subluminal.clock import now
from subluminal.config.places import Places, places
from subluminal.contracts.vocabulary import TrustLevel
from subluminal.core.acting.launches import Launch, forget_launch, note_launch
from subluminal.core.controls.agents import register, revoke
from subluminal.trust.home_key import home_key
from subluminal.trust.home_tokens import make_token

ALLOW = {"action": "ALLOW", "reason_code": "WELCOME", "message": "welcome"}
DENY = {"action": "BLOCK", "reason_code": "DENIED", "message": "not you"}
OTHERS = rule("others", "deny", DENY)


@pytest.fixture
def where(own_home: Path) -> Places:
    return places({"SUB_HOME": str(own_home)})


def run_ends(events: list[dict[str, Any]]) -> dict[str, str]:
    return {e["run_id"]: e["run"]["status"] for e in events if e["type"] == "run_end"}


# Scopes


@requirement("sdk:run-ends-last")
@pytest.mark.parametrize("by", ["close", "scope"])
def test_a_run_ends_with_the_last_of_its_calls(office: Office, by: str) -> None:
    """Other threads may be in a call when the guard is closed, or when the scope is left."""
    guard = office.guard(deny("rm"))
    late: list[GuardedCall] = []

    def begin() -> None:
        for tool in ("a", "b"):
            late.append(guard.call(tool, {}))
            late[-1].begin()

    if by == "close":
        begin()
        guard.close()
    else:
        scope = guard.run("run-1")
        scope.__enter__()
        begin()
        scope.__exit__(ValueError, ValueError("no"), None)
    assert run_ends(events_of(office.home)) == {}
    assert list((office.home / "state" / "processes").iterdir()), "it would be found if it died"
    for call in late:
        call.end(OSError("late"))
    events = events_of(office.home)
    assert run_ends(events) == {"run-1": "SUCCEEDED" if by == "close" else "FAILED"}
    assert [event["type"] for event in events[-3:]] == ["tool_call_end", "tool_call_end", "run_end"]
    assert events[-1]["run"]["summary"]["errors_total"] == 2


@requirement("sdk:scoped-run")
def test_a_run_holds_within_its_block_and_ends_with_it(office: Office) -> None:
    guard = office.guard(budget(1))
    other = office.guard(run_id="run-2")
    with guard.run("a", meta={"ticket": "T-1"}) as scope:
        assert (scope.run_id, guard.run_id, other.run_id) == ("a", "a", "a")
        assert guard.check("t", {}).action == "ALLOW"
        other.check("t", {})
        assert guard.check("t", {}).action == "BLOCK"
    with pytest.raises(ValueError, match="no"), guard.run("b"):
        raise ValueError("no")
    with pytest.raises(KeyboardInterrupt), guard.run("c"):
        raise KeyboardInterrupt
    with guard.run():
        assert guard.check("t", {}).action == "ALLOW"
    assert guard.check("t", {}).action == "ALLOW", "the budget of the process' own run"
    before_close = run_ends(_so_far(office))
    assert {k: before_close[k] for k in "abc"} == {
        "a": "SUCCEEDED",
        "b": "FAILED",
        "c": "CANCELLED",
    }
    events = office.events()
    (started,) = [e for e in events if e["type"] == "run_start" and e["run_id"] == "a"]
    assert started["run"]["meta"]["ticket"] == "T-1"
    assert run_ends(events)["run-1"] == "SUCCEEDED"


def _so_far(office: Office) -> list[dict[str, Any]]:
    from tests.adapters.records import events_of

    return events_of(office.home)


@requirement("sdk:scoped-run")
def test_tasks_and_copied_contexts_are_in_the_run_and_other_threads_are_not(office: Office) -> None:
    guard = office.guard()
    seen: dict[str, str] = {}

    async def named(name: str) -> str:
        async with guard.run(name):
            await asyncio.sleep(0)
            return guard.run_id

    async def main() -> list[str]:
        return await asyncio.gather(*map(named, "abc"))

    assert asyncio.run(main()) == ["a", "b", "c"]
    with guard.run("d"), ThreadPoolExecutor(1) as pool:
        thread = threading.Thread(target=lambda: seen.setdefault("bare", guard.run_id))
        thread.start()
        thread.join()
        seen["copied"] = pool.submit(copy_context().run, lambda: guard.run_id).result()
    assert seen == {"bare": "run-1", "copied": "d"}


def test_guards_of_another_home_are_not_in_the_run(office: Office, tmp_path: Path) -> None:
    guard = office.guard()
    with Guard(home=tmp_path / "other", run_id="own") as other, guard.run("a"):
        assert other.run_id == "own"


def test_an_argument_goes_before_the_environment(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RUN_ID", "AGENT_ID", "PRINCIPAL", "ENV"):
        monkeypatch.setenv(f"SUB_{name}", "said")
    with Guard(run_id="given", agent_id="given", principal="given", env="prod") as guard:
        guard.check("t", {})
    with Guard() as guard:
        guard.check("t", {})
    starts = [e for e in office.events() if e["type"] == "run_start"]
    assert sorted((e["run_id"], e["agent_id"], e["principal"], e["env"]) for e in starts) == [
        ("given", "given", "given", "prod"),
        ("said", "said", "said", "unknown"),
    ]


# Delegation


@pytest.fixture
def agents(where: Places) -> Places:
    register(where.state, registration(agent_id="boss", roles=["reader", "writer"]))
    register(
        where.state,
        registration(agent_id="helper", roles=["reader", "admin"], trust_level=TrustLevel.VERIFIED),
    )
    return where


@pytest.fixture
def launched(agents: Places) -> Iterator[None]:
    """This process as `sub run --agent-id boss` would have started it."""
    sealed = note_launch(agents, Launch(run_id="run-1", agent_id="boss", is_launched=True))
    yield
    forget_launch(sealed)


def allow(**match: Any) -> dict[str, Any]:
    return rule("given", "allow", ALLOW, **match)


@requirement("sdk:delegate")
@pytest.mark.usefixtures("launched")
def test_work_that_is_handed_on_is_one_deeper_and_no_more_trusted(office: Office) -> None:
    facts = {
        "depth": allow(delegation_depth_min=1),
        "deeper": allow(delegation_depth_min=2),
        "both": allow(agent_roles_any=["reader"]),
        "only the parent": allow(agent_roles_any=["writer"]),
        "only the child": allow(agent_roles_any=["admin"]),
        "verified": allow(trust_level_min="verified"),
        "privileged": allow(trust_level_min="privileged"),
    }
    found = {}
    for name, one in facts.items():
        guard = office.guard(one, OTHERS, agent_id="boss")
        child = guard.delegate("helper")
        assert child.run_id == guard.run_id
        found[name] = (guard.check("t", {}).action.value, child.check("t", {}).action.value)
        child.close()
    assert found == {
        "depth": ("BLOCK", "ALLOW"),
        "deeper": ("BLOCK", "BLOCK"),
        "both": ("ALLOW", "ALLOW"),
        "only the parent": ("ALLOW", "BLOCK"),
        "only the child": ("BLOCK", "BLOCK"),
        "verified": ("ALLOW", "ALLOW"),
        "privileged": ("ALLOW", "BLOCK"),
    }
    grandchild = office.guard(facts["deeper"], OTHERS, agent_id="boss")
    assert grandchild.delegate("helper").delegate("helper").check("t", {}).action == "ALLOW"


@requirement("sdk:delegate")
def test_a_mere_name_hands_on_nothing(office: Office, agents: Places) -> None:
    for match in ({"agent_roles_any": ["reader"]}, {"agent_type": ["pr_agent"]}):
        guard = office.guard(allow(**match), OTHERS, agent_id="boss")
        assert guard.delegate("helper").check("t", {}).action == "BLOCK"


@requirement("sdk:delegate")
def test_a_proven_agent_hands_on_by_its_token(office: Office, agents: Places) -> None:
    token = make_token(home_key(agents.state), "boss", now_ms=now().wall_ms, ttl_ms=60_000)
    reader = allow(agent_roles_any=["reader"], delegation_depth_min=1)
    guard = office.guard(reader, OTHERS, agent_id="boss", attestation=token)
    child = guard.delegate("helper")
    assert child.check("t", {}).action == "ALLOW"
    assert not set(child.environ()) & {"SUB_ATTESTATION", "SUB_ATTESTATION_FILE"}
    own = make_token(home_key(agents.state), "helper", now_ms=now().wall_ms, ttl_ms=60_000)
    bare = office.guard(reader, OTHERS, agent_id="boss")
    assert bare.delegate("helper", attestation=own).check("t", {}).action == "BLOCK", (
        "the roles of both are needed, and the parent has proven none"
    )
    assert token not in json.dumps(office.events())


@pytest.mark.usefixtures("launched")
def test_work_of_a_revoked_agent_is_refused_wherever_it_was_handed_on(
    office: Office, agents: Places
) -> None:
    child = office.guard(agent_id="boss").delegate("helper")
    assert child.check("t", {}).action == "ALLOW"
    revoke(agents.state, registration(agent_id="boss"))
    assert child.check("t", {}).reason_code == "AGENT_REVOKED"


def test_a_delegated_guard_has_the_options_of_the_first(office: Office) -> None:
    guard = office.guard(deny("rm"), refusals="return", server="shop")
    child = guard.delegate("helper")
    assert child.tool(name="rm")(lambda: "ran")().startswith("Blocked by policy")
    child.close()
    (call,) = office.calls()
    assert call[0]["call"]["server_name"] == "shop"
    assert call[0]["agent_id"] == "helper"


# Children


@requirement("sdk:environ")
def test_a_shim_and_a_guard_of_a_child_share_the_run(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child gets nothing but these variables, as from a client that clears the environment."""
    guard = office.guard(budget(3), principal="ann", env="staging", run_id=None)
    bare = {"PATH": os.environ["PATH"]}
    assert guard.check("t", {}).action == "ALLOW"
    code = "import subluminal; print(subluminal.Guard().check('t', {}).action.value)"
    child = subprocess.run(
        [sys.executable, "-c", code],
        env={**bare, **guard.environ()},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout == "ALLOW\n"
    for name in list(os.environ):
        monkeypatch.delenv(name)
    wire = Wire(
        upstream("echoer"), home=office.home, place=tmp_path, env={**bare, **guard.environ()}
    )
    wire.send(_tools_call(1))
    assert "result" in wire.line()
    wire.send(_tools_call(2))
    assert wire.line()["error"]["data"]["subluminal"]["reason_code"] == "BUDGET_EXCEEDED"
    wire.finish()
    wire.abandon()
    events = office.events()
    starts = [call[0] for call in calls_of(events)]
    assert {e["run_id"] for e in starts} == {guard.run_id}
    assert {(e["agent_id"], e["principal"]) for e in starts} == {("billing", "ann")}
    assert len({e["source"]["shim_id"] for e in starts}) == 3


def _tools_call(number: int) -> bytes:
    params = {"name": "t", "arguments": {}, "_meta": {"answer": {"result": {}}}}
    body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(body).encode() + b"\n"


@requirement("sdk:environ")
def test_a_token_is_passed_on_only_if_the_environment_has_it(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "SUB_ATTESTATION" not in office.guard(attestation="a.b.c").environ()
    monkeypatch.setenv("SUB_ATTESTATION", "d.e.f")
    assert office.guard().environ()["SUB_ATTESTATION"] == "d.e.f"
    assert "SUB_ATTESTATION" not in office.guard(attestation="a.b.c").environ()
    with office.guard().run("scoped"):
        assert office.guard().environ()["SUB_RUN_ID"] == "scoped"
    assert office.guard(policy=bundle(deny("x"))).environ()["SUB_POLICY"].endswith(".json")
