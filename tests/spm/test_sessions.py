"""Limits of sessions: over all calls of a session in a run, and what does not count."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.requirements import requirement
from tests.spm.conftest import PAY, Bureau

from subluminal.spm import AgentSecurity, session_context, sessions

LIMITS = {"t": {"max_per_session": 5}}
PARAMS: dict[str, Any] = {"tool_name": "t", "tool_args": {}}


@requirement("sdk:spm-session-limit")
def test_rejected_calls_use_up_no_session_limit(bureau: Bureau) -> None:
    """Upstream counts a call before the person has said no."""
    answers = [False, False, True, True]
    security = bureau.security(
        PAY,
        plugins=[session_context(limits={"pay": {"max_per_session": 1}})],
        on_approval_required=lambda _request, _decision: answers.pop(0),
    )
    found = [bureau.check(security, "pay", session_id="s1") for _ in range(4)]
    assert [each.allowed for each in found] == [False, False, True, False]
    assert found[3].decision.reasons[0].code == "SESSION_LIMIT_EXCEEDED"
    assert found[3].event.plugin_source == "session-context"
    assert bureau.check(security, "pay", session_id="s2").allowed
    answers += [True, True]
    assert bureau.check(security, "pay").allowed
    assert bureau.check(security, "pay").allowed


@requirement("sdk:spm-session-run")
def test_a_session_is_limited_in_threads_processes_and_all_objects_of_a_run(bureau: Bureau) -> None:
    """Upstream counts in one object."""
    securities = [
        bureau.security(plugins=[session_context(limits=LIMITS)], run_id=run)
        for run in ("run-1", "run-1", "run-2")
    ]

    def check(number: int) -> bool:
        security: AgentSecurity = securities[number % 2]
        return security.check_tool_call_sync(
            agent_id=f"a{number % 3}", session_id="s", **PARAMS
        ).allowed

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(check, range(4))) == 4
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if [check(0), check(1)] == [True, False] else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert not check(0)
    other_run = securities[2].check_tool_call_sync(agent_id="a0", session_id="s", **PARAMS)
    assert other_run.allowed


@requirement("sdk:spm-session-run")
def test_a_session_ends(bureau: Bureau, monkeypatch: pytest.MonkeyPatch) -> None:
    security = bureau.security(plugins=[session_context(limits={"t": {"max_per_session": 1}})])
    found = [bureau.check(security, "t", session_id="s").allowed for _ in range(2)]
    assert found == [True, False]
    monkeypatch.setattr(sessions, "_SESSION_MS", 0)
    assert bureau.check(security, "t", session_id="s").allowed
