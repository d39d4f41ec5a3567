"""Plugins: objects of the program that decide about its calls, in addition to the policies.

A plugin is any object with a `name`. It may have these, as functions or coroutine functions:

    fail_open                                      True: a plugin that fails refuses nothing
    before_check(call)                             before the policies are asked
    after_decision(call, decision)                 after every decision
    after_execution(call, decision, result, error) after the end of a call that was executed

`call` is a `ToolCall`. The first two may return a `Decision`. It is one more layer: the strictest
decision holds, so no plugin can let pass what a policy refuses.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Protocol

import msgspec

from subluminal.adapters.in_process.guarding.reports import Reports
from subluminal.adapters.in_process.guarding.steps import Ask, Steps
from subluminal.adapters.in_process.results import said_by
from subluminal.contracts.call import ToolCall
from subluminal.contracts.decision import Decision, PolicyRef
from subluminal.contracts.gate import Settled
from subluminal.contracts.vocabulary import ACTION_STRICTNESS, Action, ReasonCode
from subluminal.policy.refusing import blocked

_NEEDED = {
    Action.THROTTLE: "backoff_ms",
    Action.REJECT_WITH_HINT: "hint",
    Action.TERMINATE_RUN: "terminate",
}
"""What a refusal must have, besides what every decision has."""


class Plugin(Protocol):
    """A plugin; what else it may have is optional."""

    @property
    def name(self) -> str:
        """Its name, unique among the plugins of a guard."""


class Plugins:
    """The plugins of a guard, asked in order."""

    def __init__(self, plugins: Iterable[Plugin], reports: Reports) -> None:
        self._plugins = tuple(plugins)
        self._reports = reports
        names = [getattr(plugin, "name", None) for plugin in self._plugins]
        for name in names:
            if not isinstance(name, str) or not name:
                raise ValueError("a plugin must have a `name`, which is a text")
            if names.count(name) > 1:
                raise ValueError(f"two plugins have the name `{name}`")

    def __bool__(self) -> bool:
        return bool(self._plugins)

    def before(self, call: ToolCall) -> Steps[Settled | None]:
        """Asks about a call that is not decided yet; returns the strictest refusal."""
        return self._strictest("before_check", call)

    def after(self, call: ToolCall, decision: Decision) -> Steps[Settled | None]:
        """Tells about a decision; returns the strictest refusal, if it is stricter."""
        found = yield from self._strictest("after_decision", call, decision)
        if found is None or _strictness(found.decision) <= _strictness(decision):
            return None
        return found

    def ended(
        self, call: ToolCall, decision: Decision, result: Any, error: BaseException | None
    ) -> Steps[None]:
        """Tells about the end of a call. A plugin that fails changes nothing."""
        for plugin in self._plugins:
            hook = getattr(plugin, "after_execution", None)
            if hook is None:
                continue
            try:
                yield Ask(hook, (call, decision, result, error))
            except Exception as failure:  # noqa: BLE001 - code of the program
                self._reports.tell(failure, _where(plugin, "after_execution"))

    def _strictest(self, hook_name: str, *given: Any) -> Steps[Settled | None]:
        strictest: Settled | None = None
        for plugin in self._plugins:
            hook = getattr(plugin, hook_name, None)
            if hook is None:
                continue
            try:
                found = _checked((yield Ask(hook, given)))
            except Exception as failure:  # noqa: BLE001 - code of the program
                self._reports.tell(failure, _where(plugin, hook_name))
                if getattr(plugin, "fail_open", False) is True:
                    continue
                summary = f"plugin `{plugin.name}` failed: {said_by(failure)}"
                found = blocked(ReasonCode.PLUGIN_ERROR, summary)
            if found is None:
                continue
            if strictest is None or _strictness(found) > _strictness(strictest.decision):
                strictest = Settled(found, _reference(plugin))
        return strictest


def _strictness(decision: Decision) -> int:
    return ACTION_STRICTNESS[decision.action]


def _checked(found: object) -> Decision | None:
    """Returns the refusal that a hook returned, or None. Raises if it is not a whole decision."""
    if found is None:
        return None
    if not isinstance(found, Decision):
        raise TypeError(f"it returned a value of type {type(found).__name__}, not a Decision")
    decision = msgspec.convert(msgspec.to_builtins(found), Decision)
    if decision.action is Action.ALLOW:
        return None
    needed = _NEEDED.get(decision.action)
    if needed is not None and getattr(decision, needed) is None:
        raise ValueError(f"it returned a {decision.action} without `{needed}`")
    return decision


def _reference(plugin: Plugin) -> PolicyRef:
    """Returns the plugin as the policy that decided."""
    name, version = f"plugin:{plugin.name}", str(getattr(plugin, "version", "0"))
    return PolicyRef(
        policy_id=name,
        policy_version=version,
        policy_hash=sha256(f"{name} {version}".encode()).hexdigest(),
    )


def _where(plugin: Plugin, hook_name: str) -> str:
    return f"{hook_name} of plugin {plugin.name}"
