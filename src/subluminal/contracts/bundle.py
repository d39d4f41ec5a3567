"""Contract B: the policy bundle as its author writes it (Pack section 2).

Read strictly: an unknown field or kind is an error, never a rule that silently does not match.
Defaults of optional fields are the ones written here.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, field

from subluminal.contracts.vocabulary import (
    Action,
    Client,
    Env,
    Mode,
    Requirement,
    RuleKind,
    Scope,
    Severity,
)

# Literals are the subset of Action that a field admits; they compare equal to its members.
Refusal = Literal["BLOCK", "REJECT_WITH_HINT", "TERMINATE_RUN"]


class _Strict(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Shared configuration of everything a person writes."""


class NameMatch(_Strict, frozen=True, kw_only=True):
    """Matches a server's or tool's name if any of its patterns does."""

    glob: list[str] = field(default_factory=list)
    """anchored, case-sensitive: `*` any run of characters, `?` one, `[a-c]` and `[!a-c]` a set"""
    regex: list[str] = field(default_factory=list)
    """RE2 syntax, found anywhere in the name"""


class NumericRange(_Strict, frozen=True, kw_only=True):
    """Inclusive bounds; at least one is needed."""

    min: int | float | None = None
    max: int | float | None = None


class ArgsMatch(_Strict, frozen=True, kw_only=True):
    """Predicates over the top-level keys of the arguments; all must hold."""

    has_keys: list[str] = field(default_factory=list)
    """every one is present; null counts as present"""
    key_equals: dict[str, str | int | float | bool] = field(default_factory=dict)
    """1 equals 1.0; true never equals 1, "1" never equals 1"""
    key_in: dict[str, list[Any]] = field(default_factory=dict)
    numeric_range: dict[str, NumericRange] = field(default_factory=dict)
    """the value must be a number"""


class TimeMatch(_Strict, frozen=True, kw_only=True):
    """Additive: when the rule applies, by the wall clock in UTC."""

    utc_hours: list[list[int]] = field(default_factory=list)
    """half-open pairs [from, to); `[22, 6]` runs over midnight"""
    weekdays: list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]] = field(
        default_factory=list
    )


class Match(_Strict, frozen=True, kw_only=True):
    """Which calls a rule is about. Fields are ANDed; a missing field matches all (Pack 2.4)."""

    server_name: NameMatch | None = None
    tool_name: NameMatch | None = None
    risk_class: list[str] = field(default_factory=list)
    """any of these, as `tag` rules above have added them"""
    args: ArgsMatch | None = None
    time: TimeMatch | None = None
    """additive"""


class Suggestion(_Strict, frozen=True, kw_only=True):
    """Additive: how to mend one argument. Exactly one of set, remove, clamp_*, one_of."""

    set: Any = UNSET
    remove: bool = False
    clamp_min: int | float | None = None
    clamp_max: int | float | None = None
    one_of: list[Any] = field(default_factory=list)


class AccessEffect(_Strict, frozen=True, kw_only=True):
    """What an `allow` or `deny` rule does (Pack 2.5)."""

    action: Literal["ALLOW", "BLOCK", "REJECT_WITH_HINT"]
    """ALLOW for allow; BLOCK for deny (REJECT_WITH_HINT is additive)"""
    reason_code: str
    message: str
    hint_text: str | None = None
    """additive: what the agent is told where a hint is given; the message, if missing"""
    suggest: dict[str, Suggestion] = field(default_factory=dict)
    """additive: becomes `hint.suggested_args`"""
    require: Requirement | None = None
    """additive: the call needs a person's grant first (no-call-waits)"""
    approver_role: str | None = None
    """additive"""
    expires_ms: int | None = None
    """additive: how long a grant lasts"""


class Budget(_Strict, frozen=True, kw_only=True):
    """A cap on calls or on cost; at least one of the two limits is needed."""

    scope: Scope
    limit_calls: int | None = None
    """0 is valid: nothing passes"""
    limit_cost_units: int | None = None
    cost_units_per_call: int = 1
    on_exceed: Refusal
    hint_text: str | None = None
    count: Literal["attempts", "executed"] = "attempts"
    """additive"""


class RateLimit(_Strict, frozen=True, kw_only=True):
    """A token bucket: starts full, refills continuously."""

    scope: Scope
    capacity: int
    refill_tokens: int
    refill_period_ms: int
    cost_tokens_per_call: int = 1
    on_limit: Literal["THROTTLE", "BLOCK", "REJECT_WITH_HINT"]
    backoff_ms: int | None = None
    """required if on_limit is THROTTLE"""
    hint_text: str | None = None


class Breaker(_Strict, frozen=True, kw_only=True):
    """Stops what goes wrong again and again. One of the three pairs is needed, any may be given."""

    scope: Scope
    error_threshold: int | None = None
    window_ms: int | None = None
    """window of errors and of slow calls"""
    repeat_threshold: int | None = None
    repeat_window_ms: int | None = None
    latency_threshold_ms: int | None = None
    """additive: a call slower than this is slow"""
    latency_count: int | None = None
    """additive: that many slow calls in window_ms trip"""
    on_trip: Refusal
    terminate_code: str | None = None
    hint_text: str | None = None


class Dedupe(_Strict, frozen=True, kw_only=True):
    """Refuses the same call twice inside a window."""

    scope: Scope
    window_ms: int
    key: Literal["args_hash", "custom"] = "args_hash"
    """v0.1 supports args_hash only"""
    on_duplicate: Literal["BLOCK", "REJECT_WITH_HINT", "REPLAY"]
    """REPLAY is additive"""
    hint_text: str | None = None


class Tag(_Strict, frozen=True, kw_only=True):
    """Adds risk classes that rules below may match."""

    add_risk_class: list[str]


class Pin(_Strict, frozen=True, kw_only=True):
    """Additive: watches tool definitions."""

    on_change: Action
    on_new: Action


class BudgetEffect(_Strict, frozen=True, kw_only=True):
    budget: Budget


class RateLimitEffect(_Strict, frozen=True, kw_only=True):
    rate_limit: RateLimit


class BreakerEffect(_Strict, frozen=True, kw_only=True):
    breaker: Breaker


class DedupeEffect(_Strict, frozen=True, kw_only=True):
    dedupe: Dedupe


class TagEffect(_Strict, frozen=True, kw_only=True):
    tag: Tag


class PinEffect(_Strict, frozen=True, kw_only=True):
    pin: Pin


class Rule(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
):
    """What every rule has (Pack 2.3)."""

    rule_id: str
    """unique within the policy"""
    enabled: bool
    match: Match
    severity: Severity
    description: str | None = None


class AllowRule(Rule, frozen=True, kw_only=True, tag=RuleKind.ALLOW.value):
    effect: AccessEffect


class DenyRule(Rule, frozen=True, kw_only=True, tag=RuleKind.DENY.value):
    effect: AccessEffect


class BudgetRule(Rule, frozen=True, kw_only=True, tag=RuleKind.BUDGET.value):
    effect: BudgetEffect


class RateLimitRule(Rule, frozen=True, kw_only=True, tag=RuleKind.RATE_LIMIT.value):
    effect: RateLimitEffect


class BreakerRule(Rule, frozen=True, kw_only=True, tag=RuleKind.BREAKER.value):
    effect: BreakerEffect


class DedupeRule(Rule, frozen=True, kw_only=True, tag=RuleKind.DEDUPE.value):
    effect: DedupeEffect


class TagRule(Rule, frozen=True, kw_only=True, tag=RuleKind.TAG.value):
    effect: TagEffect


class PinRule(Rule, frozen=True, kw_only=True, tag=RuleKind.PIN.value):
    """Additive."""

    effect: PinEffect


AnyRule = (
    AllowRule | DenyRule | BudgetRule | RateLimitRule | BreakerRule | DedupeRule | TagRule | PinRule
)


class WorkloadSelector(_Strict, frozen=True, kw_only=True):
    """Matches the workload; fields are ANDed, values ORed (Pack 2.2)."""

    namespace: list[str] = field(default_factory=list)
    service_account: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    """each listed key must be equal"""
    repo: list[str] = field(default_factory=list)
    branch: list[str] = field(default_factory=list)


class Selectors(_Strict, frozen=True, kw_only=True):
    """Whom a policy is about. A missing field matches all (Pack 2.2)."""

    env: list[Env] = field(default_factory=list)
    agent_id: list[str] = field(default_factory=list)
    client: list[Client] = field(default_factory=list)
    workload: WorkloadSelector | None = None


class Defaults(_Strict, frozen=True, kw_only=True):
    """What happens when a decision cannot be made."""

    decision_on_error: Literal["ALLOW", "BLOCK"]
    fail_open_read_tools: bool = False
    """calls tagged read_like pass even where decision_on_error is BLOCK"""


class Bundle(_Strict, frozen=True, kw_only=True):
    """A policy as written (Pack 2.1)."""

    policy_id: str
    version: str
    mode: Mode
    defaults: Defaults
    selectors: Selectors
    rules: list[AnyRule]
    description: str | None = None
    owner: str | None = None
    created_at: str | None = None
