"""The policy bundle of Agent-SPM v0.3, as its users write it.

A rule, its `match` and its `when` are read strictly: a member that Agent-SPM does not know would
be a condition that silently never applies. Other members of the bundle are told and ignored.
"""

from typing import Any, Literal

from msgspec import Struct, field

from subluminal.contracts.vocabulary import TrustLevel

MAX_BYTES = 1_048_576
"""Largest bundle that Agent-SPM loads, in bytes."""
MAX_DEPTH = 20
"""Deepest nesting that Agent-SPM loads, in levels."""
MAX_RULES = 1_000
"""Most rules that Agent-SPM loads."""
MAX_EXPRESSION_CHARS = 512
"""Longest `matches_regex` that Agent-SPM runs, in UTF-16 code units."""

# Six of the words of contracts.vocabulary.Outcome: the other five come about later.
RuleOutcome = Literal[
    "ALLOW", "DENY", "REQUIRE_APPROVAL", "STEP_UP", "REQUIRE_TICKET", "REQUIRE_HUMAN"
]

_MARKS = ("rules", "defaults", "generated_at")


class _Strict(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Refuses members that Agent-SPM does not have."""


class RuleMatch(_Strict, frozen=True, kw_only=True):
    """Who calls which tool. All given members must match."""

    tool_name: str | list[str]
    """name, prefix with `*` at its end, `*`, or a list of exact names"""
    environment: str
    """environment, or `*`"""
    agent_type: str | list[str] | None = None
    trust_level_min: TrustLevel | None = None
    agent_roles_any: list[str] | None = None
    tool_provider: str | list[str] | None = None


class RuleWhen(_Strict, frozen=True, kw_only=True):
    """What the call says. All given members must hold."""

    contains_any: list[str] = field(default_factory=list)
    not_contains: list[str] = field(default_factory=list)
    matches_regex: str = ""
    data_labels_any: list[str] = field(default_factory=list)
    tool_args_match: dict[str, Any] | None = None


class SpmRule(_Strict, frozen=True, kw_only=True):
    """One rule. The first that matches decides."""

    id: str
    description: str
    match: RuleMatch
    outcome: RuleOutcome
    when: RuleWhen = RuleWhen()
    approver_role: str | None = None
    constraints: dict[str, Any] | None = None


class SpmDefaults(Struct, frozen=True, kw_only=True):
    """What happens to a call that no rule matches."""

    outcome: RuleOutcome


class SpmBundle(Struct, frozen=True, kw_only=True):
    """A whole bundle."""

    version: str
    generated_at: str
    expires_at: str
    rules: list[SpmRule]
    defaults: SpmDefaults
    signature: str | None = None


def is_agent_spm(value: Any) -> bool:
    """Whether plain data is a bundle of Agent-SPM: by its members, and without a `policy_id`."""
    if not isinstance(value, dict) or "policy_id" in value:
        return False
    if not all(name in value for name in _MARKS):
        return False
    return isinstance(value["defaults"], dict) and "outcome" in value["defaults"]


def is_of_the_pack(value: Any) -> bool:
    """Whether plain data is a policy in the Pack's language, whatever a person calls it."""
    return isinstance(value, dict) and "policy_id" in value and "generated_at" not in value
