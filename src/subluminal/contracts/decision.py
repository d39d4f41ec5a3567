"""Contract C: decisions, hints, and the error a refused call gets (Pack section 3)."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from subluminal.contracts.vocabulary import Action, HintKind, Layer, Severity


class PolicyRef(Struct, frozen=True, kw_only=True):
    """Which policy, exactly."""

    policy_id: str
    policy_version: str
    policy_hash: str
    """SHA-256 over the canonical snapshot (Pack 2.6)"""


class LayeredPolicyRef(PolicyRef, frozen=True, kw_only=True):
    """Additive: one of the policies that were asked (policy-layers)."""

    layer: Layer


class Hint(Struct, frozen=True, kw_only=True):
    """How the agent can do better (Pack 3.2.4)."""

    hint_text: str
    suggested_args: dict[str, Any] | None = None
    retry_advice: str | None = None
    hint_kind: HintKind = HintKind.OTHER


class Terminate(Struct, frozen=True, kw_only=True):
    """Why the run is over (Pack 1.6)."""

    terminate_code: str
    terminate_message: str


class GrantRef(Struct, frozen=True, kw_only=True):
    """Additive: the approval that let a call pass (no-call-waits)."""

    grant_id: str
    approver: str


class Decision(Struct, frozen=True, kw_only=True):
    """What the data plane decided about one tool call (Pack 3.1)."""

    action: Action
    rule_id: str | None
    severity: Severity
    reason_code: str
    summary: str
    backoff_ms: int | None = None
    """required for THROTTLE"""
    hint: Hint | None = None
    """required for REJECT_WITH_HINT"""
    terminate: Terminate | None = None
    """required for TERMINATE_RUN"""


class SubluminalErrorData(Struct, frozen=True, kw_only=True):
    """`error.data.subluminal` of a refused call (Pack 3.2.2)."""

    v: str
    action: Action
    rule_id: str | None
    reason_code: str
    summary: str
    run_id: str
    call_id: str
    server_name: str
    tool_name: str
    args_hash: str
    policy: PolicyRef
    backoff_ms: int | UnsetType = UNSET
    """THROTTLE"""
    retry_advice: str | UnsetType = UNSET
    """THROTTLE, recommended"""
    hint: Hint | UnsetType = UNSET
    """REJECT_WITH_HINT"""
    terminate: Terminate | UnsetType = UNSET
    """additive: TERMINATE_RUN"""
    code: int | UnsetType = UNSET
    """additive: the Pack's code, when the wire carries another (visible-hints)"""


class ErrorData(Struct, frozen=True, kw_only=True):
    """`error.data` of a refused call."""

    subluminal: SubluminalErrorData
