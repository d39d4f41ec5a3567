"""Plugins of the program as plugins of its guard (`guarding.plugins`), for one check.

The guard asks them, takes the strictest decision, and turns a failure into a refusal. Here their
contexts and results are translated. A hook is called once for a check, however often the call is
tried.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from subluminal.contracts import decision as core
from subluminal.contracts.vocabulary import Action, ReasonCode, Severity
from subluminal.policy.refusing import blocked
from subluminal.spm.reading import copied
from subluminal.spm.types import (
    STRICTNESS,
    AfterDecisionContext,
    AgentActionRequest,
    BeforeCheckContext,
    Decision,
    DecisionOutcome,
    PluginResult,
    Reason,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subluminal.spm.checking import Check
    from subluminal.spm.doors import Door

_HOOKS = ("before_check", "after_decision")
_REQUIRED: dict[DecisionOutcome, ReasonCode] = {
    "REQUIRE_APPROVAL": ReasonCode.APPROVAL_REQUIRED,
    "STEP_UP": ReasonCode.STEP_UP_REQUIRED,
    "REQUIRE_TICKET": ReasonCode.TICKET_REQUIRED,
    "REQUIRE_HUMAN": ReasonCode.HUMAN_REQUIRED,
}
_NO_REASON = Reason("DENIED", "a plugin refused this call")


class SecurityPlugin(Protocol):
    """A plugin: any object with a name. It may have `version` and `fail_open`.

    And the hooks `initialize`, `before_check`, `after_decision`, `after_execution`, `destroy`, each
    as a function or a coroutine function.
    """

    @property
    def name(self) -> str:
        """The name, unique among the plugins of a program."""


class Counting(ABC):
    """A plugin of ours that counts in the state of the run."""

    @abstractmethod
    def take(self, door: "Door", request: AgentActionRequest) -> PluginResult | None:
        """Counts a call that is checked, or refuses it."""

    @abstractmethod
    def ended(
        self, door: "Door", request: AgentActionRequest, decision: Decision | None, *, allowed: bool
    ) -> None:
        """Takes note of the decision about a call; None if there is none, because of an error."""


class Said(NamedTuple):
    """A decision of a plugin that refuses a call, or requires something of a person."""

    decision: Decision
    plugin: str


class Bound:
    """A plugin, bound to one check."""

    def __init__(self, plugin: SecurityPlugin, check: "Check") -> None:
        self.name = plugin.name
        self.version = getattr(plugin, "version", None) or "0"
        self.fail_open = getattr(plugin, "fail_open", False) is True
        self._plugin, self._check = plugin, check
        self._found: dict[str, Said | None] = {}

    def before_check(self, _call: object) -> Any:
        """Asks the plugin before the policies; returns its refusal, as the guard takes it."""
        return self._asked("before_check", BeforeCheckContext)

    def after_decision(self, _call: object, decision: core.Decision) -> Any:
        """Asks the plugin after the decision of the policies."""
        shown = self._check.shown(decision)
        return self._asked("after_decision", lambda request: AfterDecisionContext(request, shown))

    def _asked(self, name: str, context_of: Callable[[AgentActionRequest], Any]) -> Any:
        hook = self._hook(name)
        if hook is None:
            return None
        if name not in self._found:
            shown = _copy(self._check.request)
            found = hook(context_of(shown))
            if inspect.isawaitable(found):
                return self._awaited(name, shown, found)
            self._found[name] = self._read(shown, found)
        return self._refusal(name)

    async def _awaited(self, name: str, shown: AgentActionRequest, found: Awaitable[Any]) -> Any:
        self._found[name] = self._read(shown, await found)
        return self._refusal(name)

    def _hook(self, name: str) -> Callable[[Any], Any] | None:
        plugin, check = self._plugin, self._check
        if isinstance(plugin, Counting) and name == "before_check":
            return lambda context: plugin.take(check.door, context.request)
        return getattr(plugin, name, None)

    def _read(self, shown: AgentActionRequest, result: object) -> Said | None:
        """Takes note of what a hook returned. Raises if it cannot be used."""
        request = self._check.request
        if result is None:
            result = PluginResult()
        if not isinstance(result, PluginResult):
            raise TypeError(f"it returned a {type(result).__name__}, not a PluginResult")
        if not _is_same_call(request, shown):
            raise ValueError("it changed the agent, the tool or its arguments in place")
        modified = result.modified_request
        if modified is not None:
            if not _is_same_call(request, modified):
                raise ValueError("it asks for another agent, another tool or other arguments")
            self._check.modify(modified)
        decision = result.decision
        if decision is None or decision.outcome == "ALLOW":
            return None
        if decision.outcome not in STRICTNESS:
            raise ValueError(f"`{decision.outcome}` is not an outcome")
        said = Said(decision, self.name)
        self._check.said.append(said)
        return said

    def _refusal(self, name: str) -> core.Decision | None:
        said = self._found[name]
        return None if said is None or self._check.is_met(said) else _as_core(said.decision)


def has_hooks(plugin: SecurityPlugin) -> bool:
    """Whether a plugin wants to be asked about calls."""
    return isinstance(plugin, Counting) or any(hasattr(plugin, name) for name in _HOOKS)


def _as_core(decision: Decision) -> core.Decision:
    """Returns a refusal, or a requirement, as a guard takes it from a plugin."""
    code, message = _first(decision)
    if decision.outcome == "DENY":
        return blocked(code, message)
    return core.Decision(
        action=Action.REJECT_WITH_HINT,
        rule_id=None,
        severity=Severity.WARN,
        reason_code=_REQUIRED[decision.outcome],
        summary=f"{code}: {message}",
        hint=core.Hint(hint_text=message or code),
        constraints=decision.constraints,
    )


def _first(decision: Decision) -> tuple[str, str]:
    reason = decision.reasons[0] if decision.reasons else _NO_REASON
    return reason.code, reason.message


def _copy(request: AgentActionRequest) -> AgentActionRequest:
    """Returns a request that a hook may keep, and cannot change for others."""
    from dataclasses import replace

    action = replace(request.action, tool_args=copied(request.action.tool_args))
    return replace(request, action=action, context=copied(request.context))


def _is_same_call(one: AgentActionRequest, other: AgentActionRequest) -> bool:
    ours, theirs = one.action, other.action
    return (
        one.request_id == other.request_id
        and one.agent.agent_id == other.agent.agent_id
        and ours.tool_name == theirs.tool_name
        and _is_equal(ours.tool_args, theirs.tool_args)
    )


def _is_equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    try:
        return one == other
    except Exception:  # noqa: BLE001 - arrays, for example, cannot be compared as a whole
        return repr(one) == repr(other)
