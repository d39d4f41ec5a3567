"""Contract C: decisions, hints, and the error that answers a refused call (Pack section 3)."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from subluminal.contracts.vocabulary import Action, HintKind, Layer, Severity


class PolicyRef(Struct, frozen=True, kw_only=True):
    """One exact version of a policy."""

    policy_id: str
    """`policy_id` of the bundle; `none` if the run has no policy"""
    policy_version: str
    """`version` of the bundle"""
    policy_hash: str
    """SHA-256 of the compiled policy's canonical JSON, in hex (Pack 2.6); for `none` that of an
    empty policy in observe mode"""


class LayeredPolicyRef(PolicyRef, frozen=True, kw_only=True):
    """Additive: one of the policies that were evaluated (policy-layers)."""

    layer: Layer
    """where the policy comes from"""


class Hint(Struct, frozen=True, kw_only=True):
    """What the agent can do instead of the refused call (Pack 3.2.4)."""

    hint_text: str
    """advice for the agent, in words"""
    suggested_args: dict[str, Any] | None = None
    """arguments with which the call would pass; never contains a masked value"""
    retry_advice: str | None = None
    """whether and when to retry, in words"""
    hint_kind: HintKind = HintKind.OTHER
    """what the hint is about"""
    partial: bool | UnsetType = UNSET
    """additive: true if `suggested_args` has only the arguments to change, because others of the
    call are masked"""


class Terminate(Struct, frozen=True, kw_only=True):
    """Why the run was ended (Pack 1.6)."""

    terminate_code: str
    """code of the reason: `terminate_code` of the rule, or a reason code"""
    terminate_message: str
    """the reason, in words"""


class GrantRef(Struct, frozen=True, kw_only=True):
    """Additive: the grant that let a call pass (no-call-waits)."""

    grant_id: str
    """id of the grant"""
    approver: str
    """local user who gave the grant"""


class Deferral(Struct, frozen=True, kw_only=True):
    """Additive: what a pack of the kernel waits for before a call may pass."""

    signal: str
    """name of the signal"""
    timeout_ms: int
    """longest wait for the signal in milliseconds"""


class Decision(Struct, frozen=True, kw_only=True):
    """The decision about one tool call (Pack 3.1)."""

    action: Action
    """what happens to the call"""
    rule_id: str | None
    """rule that decided; null if no rule did"""
    severity: Severity
    """severity of the rule"""
    reason_code: str
    """code of the reason: the rule's own, or one of Subluminal's"""
    summary: str
    """the reason in one sentence"""
    backoff_ms: int | None = None
    """wait before a retry in milliseconds; required for THROTTLE"""
    hint: Hint | None = None
    """advice for the agent; required for REJECT_WITH_HINT"""
    terminate: Terminate | None = None
    """why the run ends; required for TERMINATE_RUN"""
    defer: Deferral | None = None
    """what the call waits for; with SIGNAL_REQUIRED"""
    constraints: dict[str, Any] | None = None
    """additive: what the rule tells the agent to keep to; nobody enforces it"""


class SubluminalErrorData(Struct, frozen=True, kw_only=True):
    """`error.data.subluminal` of a refused call (Pack 3.2.2)."""

    v: str
    """version of the Interface Pack"""
    action: Action
    """what happened to the call"""
    rule_id: str | None
    """rule that decided; null if no rule did"""
    reason_code: str
    """code of the reason"""
    summary: str
    """the reason in one sentence"""
    run_id: str
    """id of the run"""
    call_id: str
    """id of the call"""
    server_name: str
    """server of the call"""
    tool_name: str
    """tool of the call"""
    args_hash: str
    """SHA-256 of the canonical arguments, in hex"""
    policy: PolicyRef
    """policy that decided"""
    backoff_ms: int | UnsetType = UNSET
    """wait before a retry in milliseconds, for THROTTLE"""
    retry_advice: str | UnsetType = UNSET
    """whether and when to retry, recommended for THROTTLE"""
    hint: Hint | UnsetType = UNSET
    """advice for the agent, for REJECT_WITH_HINT"""
    terminate: Terminate | UnsetType = UNSET
    """additive: why the run ended, for TERMINATE_RUN"""
    defer: Deferral | UnsetType = UNSET
    """additive: what the call waits for, with SIGNAL_REQUIRED"""
    constraints: dict[str, Any] | UnsetType = UNSET
    """additive: what the rule tells the agent to keep to"""
    code: int | UnsetType = UNSET
    """additive: the Pack's error code, if `error.code` is another one (setting `codes`)"""


class ErrorData(Struct, frozen=True, kw_only=True):
    """`error.data` of a refused call."""

    subluminal: SubluminalErrorData
    """the refusal"""
