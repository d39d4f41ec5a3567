"""Violations: one record for each call that broke a rule.

Whether a violation fails the run depends on the options of `sub run`. They are recorded in
run_start, so the same events give the same verdict wherever they are read.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import Struct

from subluminal.contracts.vocabulary import SEVERITY_RANK, Action, ReasonCode, Severity
from subluminal.policy.outcomes import outcome_of

NO_POLICY = "none"
"""policy_id of a call in a run without any policy (policy-layers)"""

_NO_RULE = (ReasonCode.DEFAULT_ALLOW, ReasonCode.POLICY_NOT_APPLICABLE)
"""Reasons of calls that passed because no rule matched. Their severity means nothing."""


class Strict(StrEnum):
    """What `sub run --strict` fails on."""

    REFUSED = "refused"
    """BLOCK, REJECT_WITH_HINT and TERMINATE_RUN"""
    THROTTLE = "throttle"
    """the same, and THROTTLE"""


class Kind(StrEnum):
    """Why a call is a violation."""

    REFUSED = "refused"
    THROTTLED = "throttled"
    OBSERVED = "observed"
    """it passed only because the policy is in observe mode"""
    FLAGGED = "flagged"
    """it passed, but by a rule whose severity fails the run (`--fail-on`)"""
    UNGOVERNED = "ungoverned"
    """it passed, because no policy applied to it"""


class Demands(NamedTuple):
    """The options of `sub run` that decide whether violations fail the run."""

    strict: Strict | None = None
    fail_on: Severity | None = None
    allow_silent: tuple[str, ...] = ()
    """servers that need not be heard from"""

    @classmethod
    def recorded(cls, meta: Mapping[str, Any]) -> "Demands":
        """Returns the demands in the `meta` of a run_start event."""
        strict, fail_on = meta.get("strict"), meta.get("fail_on")
        allowed = meta.get("allow_silent")
        return cls(
            Strict(strict) if strict in list(Strict) else None,
            Severity(fail_on) if fail_on in list(Severity) else None,
            tuple(str(name) for name in allowed) if isinstance(allowed, list) else (),
        )

    def meta(self) -> dict[str, Any]:
        """Returns the demands as `meta` of a run_start event."""
        named = {"strict": self.strict, "fail_on": self.fail_on}
        meta: dict[str, Any] = {name: each.value for name, each in named.items() if each}
        return meta | ({"allow_silent": list(self.allow_silent)} if self.allow_silent else {})

    @property
    def judge(self) -> bool:
        """Whether anything can fail the run."""
        return self.strict is not None or self.fail_on is not None

    def reaches(self, severity: str) -> bool:
        """Whether a decision of this severity fails the run."""
        return self.fail_on is not None and _rank(severity) >= SEVERITY_RANK[self.fail_on]


NO_DEMANDS = Demands()


class SilentServer(Struct, frozen=True, kw_only=True):
    """A server that the client was configured to start, and that no shim spoke for.

    What it was asked is not on record.
    """

    server_name: str | None
    """None if the configuration could not be read"""
    detail: str
    fails: bool
    """True if it fails the run"""

    @property
    def title(self) -> str:
        """The server, or what is known instead."""
        return "the client's configuration" if self.server_name is None else self.server_name


SILENT_STATE = "silent"
"""`state` of the shim_health event in which `sub run` records a silent server"""


def silent_in(health: Mapping[str, Any], demands: Demands) -> SilentServer:
    """Returns the silent server in a shim_health event."""
    name = health.get("server_name")
    return SilentServer(
        server_name=name,
        detail=health.get("detail", ""),
        fails=demands.strict is not None and (name is None or name not in demands.allow_silent),
    )


class Violation(Struct, frozen=True, kw_only=True):
    """One call that broke a rule."""

    kind: Kind
    fails: bool
    """True if it fails the run"""
    seq: int
    """number of the call within the run; 0 if its start is not on record"""
    call_id: str
    ts: str
    server_name: str
    tool_name: str
    args_hash: str
    action: str
    """the decision, or the one that enforcing would have made"""
    outcome: str | None
    """the same in Agent-SPM's words"""
    rule_id: str | None
    severity: str
    reason_code: str
    summary: str
    policy_id: str
    policy_hash: str

    @property
    def is_failure(self) -> bool:
        """Whether reports show it as a failure: it fails the run, or it was refused."""
        return self.fails or self.kind is Kind.REFUSED


def violation_in(event: Mapping[str, Any], seq: int, demands: Demands) -> Violation | None:
    """Returns the violation in a tool_call_decision or call_round event; None if there is none."""
    call, decision = event["call"], event["decision"]
    policy = decision["policy"]
    made = decision.get("would_be") or decision
    explain = decision["explain"]
    kind = _kind(decision, demands)
    if kind is None:
        return None
    severity = max(decision["severity"], made["severity"], key=_rank)
    reason_code = made.get("reason_code") or explain["reason_code"]
    return Violation(
        kind=kind,
        fails=_fails(kind, severity, demands),
        seq=seq,
        call_id=call["call_id"],
        ts=event["ts"],
        server_name=call["server_name"],
        tool_name=call["tool_name"],
        args_hash=call["args_hash"],
        action=made["action"],
        outcome=outcome_of(made["action"], reason_code, has_grant="grant" in decision),
        rule_id=made["rule_id"],
        severity=severity,
        reason_code=reason_code,
        summary=explain["summary"],
        policy_id=policy["policy_id"],
        policy_hash=policy["policy_hash"],
    )


def _kind(decision: Mapping[str, Any], demands: Demands) -> Kind | None:
    action = decision["action"]
    if action == Action.THROTTLE:
        return Kind.THROTTLED
    if action != Action.ALLOW:
        return Kind.REFUSED
    if "would_be" in decision and decision["would_be"]["action"] != Action.ALLOW:
        return Kind.OBSERVED
    reason_code = decision["explain"]["reason_code"]
    if reason_code not in _NO_RULE and demands.reaches(decision["severity"]):
        return Kind.FLAGGED
    is_asked = decision["policy"]["policy_id"] != NO_POLICY
    if is_asked and reason_code != ReasonCode.POLICY_NOT_APPLICABLE:
        return None
    return Kind.UNGOVERNED if demands.strict else None


def _fails(kind: Kind, severity: str, demands: Demands) -> bool:
    if kind is Kind.UNGOVERNED or demands.reaches(severity):
        return True
    if kind is Kind.THROTTLED:
        return demands.strict is Strict.THROTTLE
    return kind is Kind.REFUSED and demands.strict is not None


def _rank(severity: str) -> int:
    return SEVERITY_RANK[Severity(severity)] if severity in list(Severity) else 0
