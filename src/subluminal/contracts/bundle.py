"""Contract B: a policy bundle as its author writes it (Pack section 2).

Bundles are read strictly: an unknown field or kind is an error, never a rule that silently does
not match. The defaults of optional fields are the ones written here.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, field

from subluminal.contracts.vocabulary import (
    Action,
    Client,
    DataClass,
    Env,
    Mode,
    Requirement,
    RuleKind,
    Scope,
    Severity,
    Taint,
    TrustLevel,
)

# A Literal lists the actions that a field accepts. Its words compare equal to members of Action.
Refusal = Literal["BLOCK", "REJECT_WITH_HINT", "TERMINATE_RUN"]


class _Strict(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Shared configuration of everything that an author writes."""


class NameMatch(_Strict, frozen=True, kw_only=True):
    """Patterns for the name of a server or tool. The name matches if any pattern does."""

    glob: list[str] = field(default_factory=list)
    """globs over the whole name, case-sensitive: `*` is any text, `?` one character, `[a-c]` and
    `[!a-c]` a set of characters"""
    regex: list[str] = field(default_factory=list)
    """regular expressions in RE2 syntax, found anywhere in the name"""


class NumericRange(_Strict, frozen=True, kw_only=True):
    """Bounds of a number. At least one is required."""

    min: int | float | None = None
    """smallest number that matches"""
    max: int | float | None = None
    """largest number that matches"""
    gt: int | float | None = None
    """additive: the number must be greater than this"""
    lt: int | float | None = None
    """additive: the number must be less than this"""


class ArgsMatch(_Strict, frozen=True, kw_only=True):
    """Predicates about the top-level keys of a call's arguments. All must hold."""

    has_keys: list[str] = field(default_factory=list)
    """keys that must all be present, with any value, even null"""
    key_equals: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    """key to the value that it must have; 1 equals 1.0, but neither true nor "1" equals 1"""
    key_not_equals: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    """additive: key to the value that it must not have; a missing key has another value"""
    key_in: dict[str, list[Any]] = field(default_factory=dict)
    """key to the values of which it must have one"""
    numeric_range: dict[str, NumericRange] = field(default_factory=dict)
    """key to the bounds of its value, which must be a number"""


class TimeMatch(_Strict, frozen=True, kw_only=True):
    """Additive: the times at which a rule applies, in UTC."""

    utc_hours: list[list[int]] = field(default_factory=list)
    """pairs of hours [from, to): `[9, 17]` is 09:00 to 16:59, `[22, 6]` runs over midnight"""
    weekdays: list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]] = field(
        default_factory=list
    )
    """days of the week"""


class PathMatch(_Strict, frozen=True, kw_only=True):
    """Additive: patterns and directories for a path. All given fields must match."""

    glob: list[str] = field(default_factory=list)
    """globs over the whole absolute path; `*` also matches `/`"""
    regex: list[str] = field(default_factory=list)
    """regular expressions in RE2 syntax, found anywhere in the path; one matching glob or regex is
    enough"""
    inside: list[str] = field(default_factory=list)
    """directories of which one must contain the path; `.` is the repository in which the call
    acts"""
    outside: list[str] = field(default_factory=list)
    """directories of which none may contain the path; `.` is the repository in which the call
    acts"""


class TargetsMatch(_Strict, frozen=True, kw_only=True):
    """Additive: what a call touches. At least one field is required, and all given fields must
    match. In an `allow` every command, path and host of the call must match, and nothing may be
    opaque; in other rules one command, one path and one host are enough."""

    program: NameMatch | None = None
    """patterns for the base name of a command's program"""
    argv: NameMatch | None = None
    """patterns for the words of a command, joined by one space; the program stands first, as its
    base name. The command is the same that matches `program`"""
    path: PathMatch | None = None
    """patterns and directories for a path"""
    access: list[Literal["read", "write"]] = field(default_factory=list)
    """what the call does with the path that matches `path`"""
    host: NameMatch | None = None
    """patterns for the name or address of a host, in lower case"""
    opaque: bool = False
    """whether the rule is about calls that may touch more than can be told; not in an `allow`"""


class TaintMatch(_Strict, frozen=True, kw_only=True):
    """Additive: the level of the run before the call."""

    below: Taint
    """TRUSTED or SYSTEM: the level of the run must be lower than this"""


class TextMatch(_Strict, frozen=True, kw_only=True):
    """Additive: what the values of a call say. Compared with every text, number and boolean in the
    arguments at any depth, never with keys. At least one field is required, and all given fields
    must match."""

    any_of: list[str] = field(default_factory=list)
    """texts of which one must be part of a value, in upper or lower case"""
    none_of: list[str] = field(default_factory=list)
    """texts of which none may be part of a value, in upper or lower case"""
    regex: str | None = None
    """regular expression in RE2 syntax, found anywhere in the values joined by a space, in upper or
    lower case"""


class Match(_Strict, frozen=True, kw_only=True):
    """The calls that a rule is about. All given fields must match; a missing field matches every
    call (Pack 2.4)."""

    server_name: NameMatch | None = None
    """patterns for the name of the server"""
    tool_name: NameMatch | None = None
    """patterns for the name of the tool"""
    risk_class: list[str] = field(default_factory=list)
    """risk classes of which the call must have one; `tag` rules above this rule add them"""
    args: ArgsMatch | None = None
    """predicates about the arguments"""
    time: TimeMatch | None = None
    """additive: times of day and days of the week"""
    targets: TargetsMatch | None = None
    """additive: programs, paths and hosts that the call touches"""
    taint: TaintMatch | None = None
    """additive: level of the run before the call"""
    environment: list[str] = field(default_factory=list)
    """additive: environments of which the run must have one, as SUB_ENV or `--env` says it"""
    agent_type: list[str] = field(default_factory=list)
    """additive: types of which the agent must have one"""
    trust_level_min: TrustLevel | None = None
    """additive: least trust in the agent"""
    agent_roles_any: list[str] = field(default_factory=list)
    """additive: roles of which the agent must have one"""
    registered: bool | None = None
    """additive: whether the agent is registered"""
    delegation_depth_min: int | None = None
    """additive: least number of agents that handed the work on"""
    tool_provider: list[str] = field(default_factory=list)
    """additive: providers of which the tool must have one, such as `mcp` or `built-in`"""
    data_labels_any: list[str] = field(default_factory=list)
    """additive: labels of which the program must have given the call one"""
    data_any: list[DataClass] = field(default_factory=list)
    """additive: classes of data of which the arguments must contain one"""
    text: TextMatch | None = None
    """additive: what the values of the arguments say"""
    context: ArgsMatch | None = None
    """additive: predicates about the context that the program gave with the call"""


class Suggestion(_Strict, frozen=True, kw_only=True):
    """Additive: how to correct one argument. Give exactly one of `set`, `remove`, `one_of`, or the
    clamps."""

    set: Any = UNSET
    """value that replaces the argument"""
    remove: bool = False
    """whether the argument is removed"""
    clamp_min: int | float | None = None
    """smallest number; a smaller argument is raised to it"""
    clamp_max: int | float | None = None
    """largest number; a larger argument is lowered to it"""
    one_of: list[Any] = field(default_factory=list)
    """accepted values; the first replaces any other value"""


class AccessEffect(_Strict, frozen=True, kw_only=True):
    """The effect of an `allow` or `deny` rule (Pack 2.5)."""

    action: Literal["ALLOW", "BLOCK", "REJECT_WITH_HINT"]
    """ALLOW in an allow rule; BLOCK or, additive, REJECT_WITH_HINT in a deny rule"""
    reason_code: str
    """code of the reason, which the author chooses"""
    message: str
    """the reason in one sentence"""
    hint_text: str | None = None
    """additive: advice for the agent; by default the message"""
    suggest: dict[str, Suggestion] = field(default_factory=dict)
    """additive: argument to its correction; the agent gets the result as `hint.suggested_args`"""
    require: Requirement | None = None
    """additive: what a person must do before the call passes"""
    approver_role: str | None = None
    """additive: role of the person who should decide"""
    expires_ms: int | None = None
    """additive: longest duration of a person's grant, in milliseconds"""
    constraints: dict[str, Any] = field(default_factory=dict)
    """additive: what the agent is told to keep to, such as `max_rows: 100`; told, not enforced"""


class Budget(_Strict, frozen=True, kw_only=True):
    """A cap on calls or on cost. At least one of the two limits is required."""

    scope: Scope
    """calls that share the budget"""
    limit_calls: int | None = None
    """number of calls that pass; 0 refuses every call"""
    limit_cost_units: int | None = None
    """cost units that the calls may use together"""
    cost_units_per_call: int = 1
    """cost units that one call uses"""
    on_exceed: Refusal
    """action when the budget is spent"""
    hint_text: str | None = None
    """advice for the agent; by default a summary of the refusal"""
    count: Literal["attempts", "executed"] = "attempts"
    """additive: whether refused calls count too (`attempts`) or only forwarded ones (`executed`)"""
    reset_ms: int | None = None
    """additive: the budget starts anew this long after the first call that it counted, in
    milliseconds; by default it lasts for the run"""


class RateLimit(_Strict, frozen=True, kw_only=True):
    """A token bucket, which starts full and refills continuously; or, additive, a sliding window of
    `max_calls` in `window_ms`. Give the fields of one of them."""

    scope: Scope
    """calls that share the bucket or the window"""
    capacity: int | None = None
    """tokens that a full bucket holds"""
    refill_tokens: int | None = None
    """tokens that are added in every `refill_period_ms`"""
    refill_period_ms: int | None = None
    """time in which `refill_tokens` are added, in milliseconds"""
    max_calls: int | None = None
    """additive: most calls that pass in any `window_ms`; refused calls do not count"""
    window_ms: int | None = None
    """additive: length of the sliding window, in milliseconds"""
    cost_tokens_per_call: int = 1
    """tokens that one call takes"""
    on_limit: Literal["THROTTLE", "BLOCK", "REJECT_WITH_HINT"]
    """action when the bucket has too few tokens"""
    backoff_ms: int | None = None
    """wait that the agent is told, in milliseconds; required if `on_limit` is THROTTLE"""
    hint_text: str | None = None
    """advice for the agent; by default a summary of the refusal"""


class Breaker(_Strict, frozen=True, kw_only=True):
    """Refuses calls after repeated errors, repeats or slow calls. At least one of the three
    conditions is required: errors, repeats, latency."""

    scope: Scope
    """calls that share the breaker; a repeated call is one of the same tool with the same
    arguments, on the same server unless the scope is `tool`"""
    error_threshold: int | None = None
    """number of errors in `window_ms` after which calls are refused"""
    window_ms: int | None = None
    """window in which errors and slow calls count, in milliseconds"""
    repeat_threshold: int | None = None
    """number of identical calls in `repeat_window_ms` of which the last is refused"""
    repeat_window_ms: int | None = None
    """window in which identical calls count, in milliseconds"""
    latency_threshold_ms: int | None = None
    """additive: latency in milliseconds above which a call is slow"""
    latency_count: int | None = None
    """additive: number of slow calls in `window_ms` after which calls are refused"""
    on_trip: Refusal
    """action when the breaker trips"""
    terminate_code: str | None = None
    """`terminate_code` of the run if `on_trip` is TERMINATE_RUN; by default BREAKER_TRIPPED"""
    hint_text: str | None = None
    """advice for the agent; by default a summary of the refusal"""


BREAKER_NUMBERS = (
    "error_threshold",
    "window_ms",
    "repeat_threshold",
    "repeat_window_ms",
    "latency_threshold_ms",
    "latency_count",
)
"""The fields of `Breaker` that say when it trips."""


class Dedupe(_Strict, frozen=True, kw_only=True):
    """Refuses a call that was forwarded with the same arguments a short time ago."""

    scope: Scope
    """calls that are compared with each other: in `tool` those of a tool on all servers, otherwise
    those of a tool on one server"""
    window_ms: int
    """time for which a forwarded call is remembered, in milliseconds"""
    key: Literal["args_hash", "custom"] = "args_hash"
    """what makes two calls equal; this version supports `args_hash` only"""
    on_duplicate: Literal["BLOCK", "REJECT_WITH_HINT", "REPLAY"]
    """action on a duplicate; REPLAY is additive and not supported yet"""
    hint_text: str | None = None
    """advice for the agent; by default a summary of the refusal"""


class Tag(_Strict, frozen=True, kw_only=True):
    """Adds risk classes to a call, which the rules below can match."""

    add_risk_class: list[str]
    """risk classes to add"""


class Pin(_Strict, frozen=True, kw_only=True):
    """Additive: watches tool definitions. Not supported yet."""

    on_change: Action
    """action when a tool's definition has changed"""
    on_new: Action
    """action when a tool is new"""


class Lowering(_Strict, frozen=True, kw_only=True):
    """Additive: lowers the level of the run, if the call is forwarded."""

    lower_to: Taint
    """level that the run has afterwards at most; SYSTEM exempts the call from the taint rules
    below"""


class PackQuestion(_Strict, frozen=True, kw_only=True):
    """Additive: asks an installed pack whether the call may be executed. EXECUTE has no opinion;
    every other answer refuses the call."""

    pack: str
    """name of the pack, as `sub pack list` shows it"""
    intent: str
    """kind of the intent that the call stands for; the pack must have it"""
    payload: dict[str, str] | None = None
    """field of the intent's payload to the argument of the call that it gets its value from. A
    field whose argument the call does not have is left out. Without `payload`, all arguments are
    the payload"""
    state: dict[str, Any] = field(default_factory=dict)
    """state that the pack decides by, as its documentation describes it"""
    version: str | None = None
    """version of the pack, which compiling fills in; if it is given, no other is accepted"""
    fingerprint: str | None = None
    """SHA-256 of the pack in hex, which compiling fills in; if it is given, no other is accepted"""


class Sequence(_Strict, frozen=True, kw_only=True):
    """Additive: refuses the call that completes a pattern of calls. The forwarded calls of the run,
    and this call at the end, contain the pattern in its order; others may lie between."""

    pattern: list[str]
    """globs over tool names, in order; `*` alone stands for one call or more"""
    within_ms: int | None = None
    """time between the first and the last call of the pattern at most, in milliseconds"""
    on_match: Refusal
    """action on the call that completes the pattern"""
    hint_text: str | None = None
    """advice for the agent; by default a summary of the refusal"""


class BudgetEffect(_Strict, frozen=True, kw_only=True):
    """The effect of a `budget` rule."""

    budget: Budget
    """the budget"""


class RateLimitEffect(_Strict, frozen=True, kw_only=True):
    """The effect of a `rate_limit` rule."""

    rate_limit: RateLimit
    """the token bucket"""


class BreakerEffect(_Strict, frozen=True, kw_only=True):
    """The effect of a `breaker` rule."""

    breaker: Breaker
    """the breaker"""


class DedupeEffect(_Strict, frozen=True, kw_only=True):
    """The effect of a `dedupe` rule."""

    dedupe: Dedupe
    """the window of the rule, and its action"""


class TagEffect(_Strict, frozen=True, kw_only=True):
    """The effect of a `tag` rule."""

    tag: Tag
    """the risk classes"""


class PinEffect(_Strict, frozen=True, kw_only=True):
    """Additive: the effect of a `pin` rule. Not supported yet."""

    pin: Pin
    """the actions"""


class TaintEffect(_Strict, frozen=True, kw_only=True):
    """Additive: the effect of a `taint` rule."""

    taint: Lowering
    """the level"""


class KernelEffect(_Strict, frozen=True, kw_only=True):
    """Additive: the effect of a `kernel` rule."""

    kernel: PackQuestion
    """the question"""


class SequenceEffect(_Strict, frozen=True, kw_only=True):
    """Additive: the effect of a `sequence` rule."""

    sequence: Sequence
    """the pattern"""


class Rule(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
):
    """The fields of every rule (Pack 2.3)."""

    rule_id: str
    """name of the rule, unique within the policy"""
    enabled: bool
    """whether the rule is in force"""
    match: Match
    """calls that the rule is about"""
    severity: Severity
    """severity of the rule's decisions"""
    description: str | None = None
    """note for people; changes no decision"""


class AllowRule(Rule, frozen=True, kw_only=True, tag=RuleKind.ALLOW.value):
    """Lets calls pass. The first allow or deny rule that matches settles access."""

    effect: AccessEffect
    """what the rule does"""


class DenyRule(Rule, frozen=True, kw_only=True, tag=RuleKind.DENY.value):
    """Refuses calls. The first allow or deny rule that matches settles access."""

    effect: AccessEffect
    """what the rule does"""


class BudgetRule(Rule, frozen=True, kw_only=True, tag=RuleKind.BUDGET.value):
    """Caps the calls or the cost of a run."""

    effect: BudgetEffect
    """what the rule does"""


class RateLimitRule(Rule, frozen=True, kw_only=True, tag=RuleKind.RATE_LIMIT.value):
    """Limits calls per time."""

    effect: RateLimitEffect
    """what the rule does"""


class BreakerRule(Rule, frozen=True, kw_only=True, tag=RuleKind.BREAKER.value):
    """Refuses calls after repeated errors, repeats or slow calls."""

    effect: BreakerEffect
    """what the rule does"""


class DedupeRule(Rule, frozen=True, kw_only=True, tag=RuleKind.DEDUPE.value):
    """Refuses the same call twice in a window."""

    effect: DedupeEffect
    """what the rule does"""


class TagRule(Rule, frozen=True, kw_only=True, tag=RuleKind.TAG.value):
    """Adds risk classes to calls. Never decides."""

    effect: TagEffect
    """what the rule does"""


class PinRule(Rule, frozen=True, kw_only=True, tag=RuleKind.PIN.value):
    """Additive: watches tool definitions. Not supported yet."""

    effect: PinEffect
    """what the rule does"""


class TaintRule(Rule, frozen=True, kw_only=True, tag=RuleKind.TAINT.value):
    """Additive: lowers the level of the run before a matching call is forwarded. The first that
    matches counts. Never decides."""

    effect: TaintEffect
    """what the rule does"""


class KernelRule(Rule, frozen=True, kw_only=True, tag=RuleKind.KERNEL.value):
    """Additive: lets an installed pack decide, in its place among the allow and deny rules. It
    settles access if the pack objects; otherwise the rules below go on."""

    effect: KernelEffect
    """what the rule does"""


class SequenceRule(Rule, frozen=True, kw_only=True, tag=RuleKind.SEQUENCE.value):
    """Additive: refuses the call that completes a pattern of calls. `match` says which calls of the
    run can be part of the pattern."""

    effect: SequenceEffect
    """what the rule does"""


AnyRule = (
    AllowRule
    | DenyRule
    | BudgetRule
    | RateLimitRule
    | BreakerRule
    | DedupeRule
    | TagRule
    | PinRule
    | TaintRule
    | KernelRule
    | SequenceRule
)


class WorkloadSelector(_Strict, frozen=True, kw_only=True):
    """The workloads that a policy applies to. All given fields must match; a list matches if any of
    its values does (Pack 2.2)."""

    namespace: list[str] = field(default_factory=list)
    """Kubernetes namespaces"""
    service_account: list[str] = field(default_factory=list)
    """Kubernetes service accounts"""
    labels: dict[str, str] = field(default_factory=dict)
    """labels that the workload must all have, with these values"""
    repo: list[str] = field(default_factory=list)
    """repositories"""
    branch: list[str] = field(default_factory=list)
    """branches"""


class Selectors(_Strict, frozen=True, kw_only=True):
    """The runs that a policy applies to. All given fields must match; a missing or empty field
    matches every run (Pack 2.2)."""

    env: list[Env] = field(default_factory=list)
    """environments"""
    agent_id: list[str] = field(default_factory=list)
    """names of agents"""
    client: list[Client] = field(default_factory=list)
    """agent clients"""
    workload: WorkloadSelector | None = None
    """workloads"""


class Defaults(_Strict, frozen=True, kw_only=True):
    """What happens to a call that cannot be evaluated or recorded, and how a run starts."""

    decision_on_error: Literal["ALLOW", "BLOCK"]
    """action for such a call"""
    fail_open_read_tools: bool = False
    """whether such a call passes if it has the risk class `read_like`, whatever
    `decision_on_error` says"""
    taint: Taint | None = None
    """additive: level that a run starts with at most; SYSTEM by default"""


class Bundle(_Strict, frozen=True, kw_only=True):
    """A policy as its author writes it (Pack 2.1)."""

    policy_id: str
    """name of the policy; its counters belong to this name"""
    version: str
    """version of the policy, which the author chooses"""
    mode: Mode
    """whether the policy only observes, or enforces"""
    defaults: Defaults
    """what happens to a call that cannot be evaluated or recorded"""
    selectors: Selectors
    """runs that the policy applies to; `{}` is every run"""
    rules: list[AnyRule]
    """rules in the order in which they are visited"""
    description: str | None = None
    """note for people; changes no decision"""
    owner: str | None = None
    """person or team that maintains the policy"""
    created_at: str | None = None
    """time at which the policy was written"""
    expires_at: str | None = None
    """additive: time after which the policy refuses every call that it applies to, RFC 3339"""
