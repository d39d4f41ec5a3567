"""A recorded run, as replay reads it: calls, their decisions and ends, approvals, policies."""

from typing import Any, NamedTuple

from msgspec import UNSET, Struct

from subluminal.contracts.agents import AgentFacts, AgentResolved
from subluminal.contracts.call import MCP, Given
from subluminal.contracts.control import KILLED, ApprovalGiven
from subluminal.contracts.decision import Decision
from subluminal.contracts.events import DecisionMade, WouldBe
from subluminal.contracts.identity import Identity
from subluminal.contracts.targets import Targets
from subluminal.contracts.vocabulary import (
    Action,
    Layer,
    ReasonCode,
    Severity,
    Status,
    Taint,
)
from subluminal.policy.evaluation import NO_POLICY, Evaluation
from subluminal.policy.replay.recorded_packs import RecordedPack, recorded_pack

_OUTSIDE = frozenset(
    {
        ReasonCode.RUN_TERMINATED,
        ReasonCode.KILL_SWITCH,
        ReasonCode.AMBIGUOUS_MESSAGE,
        ReasonCode.JOURNAL_UNAVAILABLE,
        ReasonCode.EVALUATION_ERROR,
        ReasonCode.EXECUTIONS_UNAVAILABLE,
    }
)
"""Reasons that, without a rule_id, mean that no rule was evaluated."""

_NO_POLICY = (NO_POLICY.policy_hash, "none")
"""The hashes of a run without a policy. Earlier versions wrote a word."""


class Said(NamedTuple):
    """The parts of a decision that replay compares. Texts (summary, hint) are not compared."""

    action: Action
    rule_id: str | None
    severity: Severity
    reason_code: str
    backoff_ms: int | None = None
    would_be: tuple[Action, str | None, str] | None = None
    """(action, rule_id, reason_code) of the decision that observe mode did not enforce"""

    def plain(self) -> dict[str, Any]:
        """Returns what `--json` prints."""
        found: dict[str, Any] = {
            "action": self.action.value,
            "rule_id": self.rule_id,
            "severity": self.severity.value,
            "reason_code": str(self.reason_code),
        }
        if self.backoff_ms is not None:
            found["backoff_ms"] = self.backoff_ms
        if self.would_be is not None:
            action, rule_id, code = self.would_be
            found["would_be"] = {
                "action": action.value,
                "rule_id": rule_id,
                "reason_code": str(code),
            }
        return found


class AskedLayer(NamedTuple):
    """One of the policies that were evaluated for a recorded call."""

    layer: Layer | None
    """layer of the policy; None if the event does not name it, because there was only one"""
    policy_id: str
    policy_hash: str


class RecordedDecision(Struct, frozen=True):
    """The parts of a decision event that replay needs. Equal events share one object."""

    said: Said
    policy_hash: str
    """hash of the policy that decided"""
    layers: tuple[AskedLayer, ...]
    grants: frozenset[str]
    """grant_ids that let this call pass"""
    was_killed: bool
    """whether a person had stopped the run"""
    by_rules: bool
    """whether the rules decided, and nothing else"""
    pack: RecordedPack | None = None
    """the pack that the door asked, and its answer"""

    @property
    def ends_run(self) -> bool:
        """Whether a rule ended the run with this decision."""
        return self.said.action is Action.TERMINATE_RUN and self.said.rule_id is not None


class RecordedCall(Struct, frozen=True):
    """A recorded call with its decision."""

    run_id: str
    call_id: str
    seq: int
    """number of the call in its run; 0 if the run's state could not be reached"""
    server_name: str
    tool_name: str
    args_hash: str
    args: dict[str, Any] | None
    """arguments; None if too large to inspect, PartialArgs if the record hides some"""
    identity: Identity
    wall_ms: int
    mono_ms: int
    decision: RecordedDecision
    tags: frozenset[str] = frozenset()
    targets: Targets | None = None
    """what the call touched; None if the record does not say, or masks a part of it"""
    provider: str = MCP
    """what provides the tool"""
    given: Given | None = None
    """what the program said of the call; its context is PartialArgs if the record hides some"""
    hidden: frozenset[str] = frozenset()
    """matchers about what the record masks: labels or claims"""


class RecordedEnd(NamedTuple):
    """How a call ended. It is replayed at the moment when breakers counted it."""

    call_id: str
    status: Status
    latency_ms: int
    mono_ms: int | None = None
    """monotonic clock when breakers counted the end, in milliseconds; None if none did"""


class RecordedLevel(NamedTuple):
    """A change of the run's level that no call made: by a person, a program, or a resource read."""

    to: Taint
    server_name: str | None = None
    """server whose resource or prompt was read"""
    raises: bool = False
    """whether a person raised the level: from then on no policy's start lowers it"""


class RecordedAgent(NamedTuple):
    """Facts about the agent that hold for the calls after this."""

    environment: str
    """environment of the run, as written"""
    facts: AgentFacts


class RecordedAnswer(NamedTuple):
    """A person's answer to an approval, or a rule lifted for a run (no-call-waits)."""

    at_ms: int
    given: ApprovalGiven
    expires_ms: int | None


class RecordedLoad(NamedTuple):
    """A policy that came into force during a run."""

    layer: Layer
    policy_id: str
    policy_hash: str


def recorded_decision(event: DecisionMade) -> RecordedDecision:
    """Extracts the parts of a decision event that replay needs."""
    would_be = event.would_be
    said = Said(
        action=event.action,
        rule_id=event.rule_id,
        severity=event.severity,
        reason_code=event.explain.reason_code,
        backoff_ms=None if event.backoff_ms is UNSET else event.backoff_ms,
        would_be=None if would_be is UNSET else _would_be(would_be),
    )
    pack = recorded_pack(event)
    if event.policies is not UNSET:
        layers = tuple(
            AskedLayer(each.layer, each.policy_id, each.policy_hash)
            for each in event.policies
            if each.layer is not Layer.PACK
        )
    elif pack is not None or event.policy.policy_hash in _NO_POLICY:
        layers = ()
    else:
        layers = (AskedLayer(None, event.policy.policy_id, event.policy.policy_hash),)
    grants = [] if event.grant is UNSET else [event.grant]
    grants += [] if event.grants is UNSET else event.grants
    return RecordedDecision(
        said,
        event.policy.policy_hash,
        layers,
        frozenset(each.grant_id for each in grants),
        event.terminate is not UNSET and event.terminate.terminate_code == KILLED,
        event.rule_id is not None or event.explain.reason_code not in _OUTSIDE,
        pack,
    )


def recorded_agent(resolved: AgentResolved) -> RecordedAgent:
    """Extracts the facts from `agent` of an event."""
    return RecordedAgent(
        resolved.environment,
        AgentFacts(
            registered=resolved.registered,
            agent_type=resolved.agent_type,
            trust_level=resolved.trust_level,
            trust_after_denials=resolved.trust_after_denials,
            roles=tuple(resolved.roles),
            delegation_depth=resolved.delegation_depth,
        ),
    )


def said_by(evaluation: Evaluation) -> Said:
    """Returns the comparable parts of an evaluation."""
    would_be = evaluation.would_be
    return said_of(evaluation.decision, None if would_be is None else _would_be(would_be))


def said_of(decision: Decision, would_be: tuple[Action, str | None, str] | None = None) -> Said:
    """Returns the comparable parts of a decision."""
    return Said(
        decision.action,
        decision.rule_id,
        decision.severity,
        decision.reason_code,
        decision.backoff_ms,
        would_be,
    )


def _would_be(told: WouldBe) -> tuple[Action, str | None, str]:
    return told.action, told.rule_id, told.reason_code
