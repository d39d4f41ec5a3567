"""AgentSecurity in a home of its own, shut down with the test."""

import asyncio
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.records import calls_of, events_of

from subluminal.spm import AgentSecurity, SecurityCheckResult

PAY = {
    "id": "PAY",
    "description": "payments are approved",
    "match": {"tool_name": "pay", "environment": "*"},
    "outcome": "REQUIRE_APPROVAL",
    "approver_role": "finance",
}
REMOVE = {
    "id": "NO_REMOVE",
    "description": "nothing is removed",
    "match": {"tool_name": "rm", "environment": "*"},
    "outcome": "DENY",
}


def policy(*rules: dict[str, Any], default: str = "ALLOW") -> dict[str, Any]:
    """A bundle of Agent-SPM."""
    return {
        "version": "1.0.0",
        "generated_at": "2026-01-21T00:00:00Z",
        "expires_at": "2099-01-21T00:00:00Z",
        "rules": deepcopy(list(rules)),
        "defaults": {"outcome": default},
    }


def rule(id_: str, tool: str, outcome: str, **more: Any) -> dict[str, Any]:
    when = more.pop("when", None)
    match = {"tool_name": tool, "environment": "*", **more}
    found = {"id": id_, "description": f"rule {id_}", "match": match, "outcome": outcome}
    return found if when is None else {**found, "when": when}


class Bureau:
    """Makes AgentSecurity, checks calls, and reads what is on record."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._made: list[AgentSecurity] = []

    def security(self, *rules: dict[str, Any], **options: Any) -> AgentSecurity:
        if not any(name.startswith("policy_") for name in options):
            options["policy_bundle"] = policy(*rules)
        found = AgentSecurity(**{"run_id": "run-1", **options})
        self._made.append(found)
        return found

    def check(self, security: AgentSecurity, tool: str, **params: Any) -> SecurityCheckResult:
        given = {"tool_args": {}, "agent_id": "support", **params}
        return asyncio.run(security.check_tool_call(tool_name=tool, **given))

    def codes(self, security: AgentSecurity, tool: str, **params: Any) -> list[str]:
        """The codes of the decision about a call."""
        return [each.code for each in self.check(security, tool, **params).decision.reasons]

    def calls(self) -> list[list[dict[str, Any]]]:
        """The calls on record: start, decision and end of each."""
        self.close()
        return calls_of(events_of(self.home, threads=True))

    def decided(self) -> list[tuple[str, str, str]]:
        """Tool, action and reason code of each call on record."""
        return [
            (
                call[0]["call"]["tool_name"],
                call[1]["decision"]["action"],
                call[1]["decision"]["explain"]["reason_code"],
            )
            for call in self.calls()
        ]

    def close(self) -> None:
        while self._made:
            asyncio.run(self._made.pop().shutdown())


@pytest.fixture
def bureau(own_home: Path) -> Iterator[Bureau]:
    bureau = Bureau(own_home)
    yield bureau
    bureau.close()
