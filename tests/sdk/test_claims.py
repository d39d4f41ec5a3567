"""What a program says with its calls: labels, a context and names may tighten, and never loosen."""

from pathlib import Path
from typing import Any

import pytest
from tests.adapters.policies import rule
from tests.requirements import requirement
from tests.sdk.conftest import Office
from tests.trust.issued import registration

from subluminal import Guard
from subluminal.config.places import places
from subluminal.contracts.vocabulary import TrustLevel
from subluminal.core.controls.agents import register

ALLOW = {"action": "ALLOW", "reason_code": "WELCOME", "message": "welcome"}
DENY = {"action": "BLOCK", "reason_code": "DENIED", "message": "not you"}
FLATTERY: list[dict[str, Any]] = [
    {"agent_type": "interactive", "trust_level": "system", "environment": "dev"},
    {"agent": {"trust_level": "system", "roles": ["admin"]}, "claims": {"environment": "dev"}},
    {"subluminal": {"claims": {"trust_level": "system"}}, "roles": ["admin"]},
]
"""Contexts with which a caller might hope to be somebody else."""


@pytest.fixture
def guard(office: Office, own_home: Path) -> Guard:
    """A guard of a registered agent that proves nothing: its name is a claim, its env a fact."""
    found = registration(agent_type="autonomous", roles=("admin",), trust_level=TrustLevel.SYSTEM)
    register(places({"SUB_HOME": str(own_home)}).state, found)
    return office.guard(
        rule("robots", "deny", DENY, agent_type=["autonomous"], tool_name={"glob": ["robot*"]}),
        rule("prod", "deny", DENY, environment=["production"], tool_name={"glob": ["deploy*"]}),
        rule("admins", "allow", ALLOW, agent_roles_any=["admin"], trust_level_min="privileged"),
        rule("others", "deny", DENY, tool_name={"glob": ["admin*"]}),
        agent_id="fixer",
        env="production",
    )


@requirement("sdk:claims-tighten")
@pytest.mark.parametrize("context", [None, *FLATTERY])
def test_no_context_and_no_label_takes_back_what_holds_without_them(
    guard: Guard, context: dict[str, Any] | None
) -> None:
    for tool, rule_id in (("robot", "robots"), ("deploy", "prod"), ("admin", "others")):
        told = guard.check(tool, {}, context=context, labels=["admin", "system"])
        assert (told.action, told.rule_id) == ("BLOCK", rule_id)
    assert guard.check("read", {}, context=context).action == "ALLOW"
