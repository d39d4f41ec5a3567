"""Requests from parameters, decisions and reasons from the core's, and the audit log."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any
from uuid import uuid4

from subluminal.adapters.in_process.guarding.reports import Reports
from subluminal.adapters.in_process.guarding.steps import Ask, Steps
from subluminal.clock import now, rfc3339
from subluminal.config.places import Places
from subluminal.contracts import decision as core
from subluminal.contracts.agents import Claims
from subluminal.contracts.bundle import AccessEffect, Bundle
from subluminal.contracts.call import Given
from subluminal.contracts.vocabulary import Action, Outcome, ReasonCode, TrustLevel
from subluminal.core.controls.stops import read_stops, stop_name
from subluminal.policy.outcomes import outcome_of
from subluminal.spm.rules import code_in
from subluminal.spm.types import (
    About,
    AgentActionRequest,
    AgentIdentity,
    Decision,
    Event,
    EventOutcome,
    Reason,
    RequestedAction,
)

_DECISIONS = {
    Outcome.APPROVED: "ALLOW",
    Outcome.REJECTED: "DENY",
    Outcome.KILL_SWITCH: "DENY",
    Outcome.RATE_LIMITED: "DENY",
    Outcome.TIMEOUT: "DENY",
}
"""Decisions of the outcomes that only events have."""


def require_types(tool_name: object, tool_args: object, agent_id: object) -> None:
    """Raises TypeError if a parameter of a check is wrong."""
    for name, text in (("tool_name", tool_name), ("agent_id", agent_id)):
        if not isinstance(text, str) or not text:
            raise TypeError(f"{name} must be a text that is not empty")
    if not isinstance(tool_args, Mapping):
        raise TypeError("tool_args must be a dict")


def request_of(
    tool_name: str,
    tool_args: Mapping[str, Any],
    agent_id: str,
    about: About,
    owner: str,
    environment: str,
) -> AgentActionRequest:
    """Returns the request of a check."""
    return AgentActionRequest(
        request_id=str(uuid4()),
        timestamp=rfc3339(now().wall_ms),
        agent=AgentIdentity(
            agent_id=agent_id,
            name=about.agent_name or agent_id,
            owner=owner,
            environment=environment,
            agent_type=about.agent_type,
            trust_level=about.trust_level,
            roles=_tuple(about.roles),
            capabilities=_tuple(about.capabilities),
            max_delegation_depth=about.max_delegation_depth,
            attestation=about.attestation,
        ),
        action=RequestedAction(
            type=about.action_type,
            tool_name=tool_name,
            tool_args=copied(tool_args),
            tool_identity=about.tool_identity,
        ),
        context=_context(about),
    )


def _context(about: About) -> dict[str, Any]:
    found = {
        **(about.context or {}),
        "user_input": about.user_input,
        "data_labels": list(about.data_labels) or None,
        "risk_hints": list(about.risk_hints) or None,
        "session_id": about.session_id,
        "parent_agent_id": about.parent_agent_id,
        "delegation_chain": None if about.delegation_chain is None else [*about.delegation_chain],
    }
    return {name: value for name, value in found.items() if value is not None}


def _tuple(given: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if given is None else tuple(given)


def given_of(request: AgentActionRequest, environment: str) -> Given:
    """Returns what the program says about a call. What it says of its agent are claims.

    `environment` is that of the run.
    """
    agent, context = request.agent, dict(request.context)
    user_input = context.pop("user_input", None)
    labels = context.pop("data_labels", ())
    chain = context.get("delegation_chain")
    claims = Claims(
        environment=None if agent.environment == environment else agent.environment,
        agent_type=agent.agent_type,
        trust_level=None if agent.trust_level is None else TrustLevel(agent.trust_level),
        roles=agent.roles,
        delegation_depth=None if chain is None else len(chain),
    )
    return Given(
        labels=frozenset(labels),
        context={**context, "action_type": request.action.type},
        user_input=user_input,
        claims=None if claims == Claims() else claims,
    )


def copied(args: Mapping[str, Any]) -> dict[str, Any]:
    """Returns arguments that nobody else can change; those that cannot be copied, as they are."""
    try:
        return deepcopy(dict(args))
    except Exception:  # noqa: BLE001 - copying runs code of the values
        return dict(args)


def approver_roles(bundle: Bundle) -> dict[str, str | None]:
    """Returns the rules of a policy, each with the role of the person who should approve."""
    return {
        rule.rule_id: rule.effect.approver_role
        for rule in bundle.rules
        if isinstance(rule.effect, AccessEffect)
    }


class Codes:
    """Turns decisions of the core into those of Agent-SPM, with its codes."""

    def __init__(self, places: Places, roles: dict[str, str | None], agent_id: str) -> None:
        """`roles` are the rules of the policy, each with the role of its approver."""
        self._places, self._roles, self._agent_id = places, roles, agent_id

    def decision_of(self, decision: core.Decision) -> Decision:
        """Returns a decision in Agent-SPM's words."""
        found = outcome_of(decision.action, decision.reason_code) or Outcome.DENY
        outcome: Any = _DECISIONS.get(found, found.value)
        return Decision(
            outcome=outcome,
            reasons=(Reason(self._code(decision), decision.summary),),
            approver_role=self._roles.get(decision.rule_id or ""),
            constraints=decision.constraints,
        )

    def _code(self, decision: core.Decision) -> str:
        if decision.reason_code == ReasonCode.KILL_SWITCH:
            return self._stop_code()
        is_own = decision.reason_code.startswith("DEFAULT_") or decision.rule_id is None
        if is_own or decision.reason_code == ReasonCode.EVALUATION_ERROR:
            return decision.reason_code
        if decision.action == Action.ALLOW and decision.rule_id not in self._roles:
            return decision.reason_code
        return code_in(str(decision.rule_id))

    def _stop_code(self) -> str:
        try:
            stops = read_stops(self._places.state)
        except OSError:
            return "GLOBAL_KILL_SWITCH"  # everything is stopped then
        if "all" in stops:
            return "GLOBAL_KILL_SWITCH"
        if stop_name("agent", self._agent_id) in stops:
            return "AGENT_KILL_SWITCH"
        return ReasonCode.KILL_SWITCH.value


class AuditLog:
    """The newest events of a program, the oldest first, and the callbacks that are told of them."""

    def __init__(
        self,
        most: int,
        reports: Reports,
        on_audit_event: Callable[[Event], object] | None,
        on_allow: Callable[..., object] | None,
        on_deny: Callable[..., object] | None,
    ) -> None:
        self.events: deque[Event] = deque(maxlen=most or None)
        self._reports = reports
        self._on_audit_event = on_audit_event
        self._on_allow, self._on_deny = on_allow, on_deny

    def settled(
        self, request: AgentActionRequest, decision: Decision, *, allowed: bool
    ) -> Steps[None]:
        """Tells the program whether a call may pass."""
        name, callback = ("on_allow", self._on_allow) if allowed else ("on_deny", self._on_deny)
        yield from self.tell(callback, request, decision, where=name)

    def tell(self, callback: Callable[..., Any] | None, *told: Any, where: str) -> Steps[None]:
        """Calls a callback, if there is one. If it fails, no decision changes."""
        if callback is None:
            return
        try:
            yield Ask(callback, told)
        except Exception as error:  # noqa: BLE001 - code of the program
            self._reports.tell(error, where)

    def add(
        self,
        request: AgentActionRequest,
        decision: Decision,
        outcome: EventOutcome,
        plugin: str | None = None,
    ) -> Steps[Event]:
        """Adds an event, and tells the program. Arguments are never part of it."""
        agent, tool = request.agent, request.action.tool_name
        event = Event(
            event_id=str(uuid4()),
            timestamp=rfc3339(now().wall_ms),
            request_id=request.request_id,
            agent_id=agent.agent_id,
            tool_name=tool,
            outcome=outcome,
            reasons=decision.reasons,
            safe_payload={
                "agent_id": agent.agent_id,
                "tool_name": tool,
                "environment": agent.environment,
                "outcome": outcome,
            },
            plugin_source=plugin,
        )
        self.events.append(event)
        yield from self.tell(self._on_audit_event, event, where="on_audit_event")
        return event
