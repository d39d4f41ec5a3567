"""AgentSecurity: checks the tool calls of a program, and guards its functions."""

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from subluminal.adapters.in_process.guarding.arguments import Binder
from subluminal.errors import SubluminalError
from subluminal.spm.answers import Ask, Questions
from subluminal.spm.checking import Checked, Checker
from subluminal.spm.doors import Doors
from subluminal.spm.hooks import Callbacks, OnError, SecurityPlugin, in_thread, resolved, run_here
from subluminal.spm.policies import Loaded, PolicyLoader, PolicySource
from subluminal.spm.reading import AuditLog, Codes, approver_roles, request_of, require_types
from subluminal.spm.rules import RulePlugin
from subluminal.spm.types import (
    About,
    AfterExecutionContext,
    AgentActionRequest,
    AgentAttestation,
    AgentTrustLevel,
    Decision,
    Event,
    PluginResult,
    PolicyBundle,
    SecurityCheckResult,
    ToolIdentity,
)

Told = Callable[[AgentActionRequest, Decision], object]
_WITHHELD = "the result was withheld"
_DECIDED_ONLY = "decided, not executed"


class SecurityError(Exception):
    """A guarded function was not run, or its result is withheld."""

    def __init__(self, decision: Decision) -> None:
        said = "; ".join(f"{each.code}: {each.message}" for each in decision.reasons)
        super().__init__(f"{decision.outcome}: {said}")
        self.decision = decision


class AgentSecurity:
    """Agent-SPM's AgentSecurity over `Guard`: one run, the same record, policies and stops."""

    def __init__(
        self,
        *,
        policy_path: str | os.PathLike[str] | None = None,
        policy_json: str | None = None,
        policy_bundle: PolicyBundle | None = None,
        policy_loader: PolicyLoader | None = None,
        policy_hmac_key: str | bytes | None = None,
        plugins: Iterable[SecurityPlugin] = (),
        on_approval_required: Ask | None = None,
        on_step_up_required: Ask | None = None,
        on_ticket_required: Ask | None = None,
        on_human_required: Ask | None = None,
        on_deny: Told | None = None,
        on_allow: Told | None = None,
        on_audit_event: Callable[[Event], object] | None = None,
        on_error: OnError | None = None,
        default_environment: str | None = None,
        default_owner: str | None = None,
        approval_timeout_ms: int = 300_000,
        max_audit_log_size: int = 10_000,
        home: str | os.PathLike[str] | None = None,
        run_id: str | None = None,
    ) -> None:
        """Loads the policy, unless a function gives it. Raises PolicyError.

        A policy source is required; beside another one, `policy_loader` is asked when the policy is
        reloaded. With `policy_hmac_key` it must be signed. Callbacks and hooks
        may be functions or coroutines. The environment is `default_environment`, or as a shim finds
        it. `max_audit_log_size=0` keeps every event in memory.
        """
        self._source = PolicySource(
            policy_path, policy_json, policy_bundle, policy_loader, policy_hmac_key
        )
        self._callbacks = Callbacks(on_error)
        self._log = AuditLog(max_audit_log_size, self._callbacks, on_audit_event, on_allow, on_deny)
        self._plugins: dict[str, SecurityPlugin] = {}
        for plugin in plugins:
            self._add(plugin)
        self._fresh = list(self._plugins.values())
        """plugins that are not initialized yet"""
        questions = Questions(
            {
                "REQUIRE_APPROVAL": on_approval_required,
                "STEP_UP": on_step_up_required,
                "REQUIRE_TICKET": on_ticket_required,
                "REQUIRE_HUMAN": on_human_required,
            },
            approval_timeout_ms,
            self._callbacks,
        )
        self._checker = Checker(self._plugins, questions, self._callbacks, self._log)
        self._default_owner = default_owner
        self._doors = Doors(home, run_id, default_environment)
        self._loaded: Loaded | None = None
        self._roles: dict[str, str | None] = {}
        self._put_rules()
        if not self._source.is_function:
            self._put(self._source.load())

    # Checks

    async def init(self) -> None:
        """Loads the policy and initializes plugins, once. A check does it if nobody has."""
        if self._loaded is None:
            self._put(await self._source.load_async())
        while self._fresh:
            plugin = self._fresh.pop(0)
            hook = getattr(plugin, "initialize", None)
            if hook is not None:
                await resolved(hook())

    async def check_tool_call(
        self,
        *,
        tool_name: str,
        tool_args: Mapping[str, Any],
        agent_id: str,
        agent_name: str | None = None,
        environment: str | None = None,
        owner: str | None = None,
        action_type: str = "tool_call",
        user_input: str | None = None,
        data_labels: Iterable[str] = (),
        risk_hints: Iterable[str] = (),
        session_id: str | None = None,
        parent_agent_id: str | None = None,
        agent_type: str | None = None,
        trust_level: AgentTrustLevel | None = None,
        roles: Iterable[str] | None = None,
        capabilities: Iterable[str] | None = None,
        max_delegation_depth: int | None = None,
        attestation: AgentAttestation | None = None,
        tool_identity: ToolIdentity | None = None,
        delegation_chain: Iterable[str] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> SecurityCheckResult:
        """Decides and records a call that is not executed here.

        What it says of the agent are claims: they can make the decision stricter, never milder. Of
        `user_input` only the hash is recorded. Raises TypeError.
        """
        about = About(
            agent_name=agent_name,
            environment=environment,
            owner=owner,
            action_type=action_type,
            user_input=user_input,
            data_labels=tuple(data_labels),
            risk_hints=tuple(risk_hints),
            session_id=session_id,
            parent_agent_id=parent_agent_id,
            agent_type=agent_type,
            trust_level=trust_level,
            roles=None if roles is None else tuple(roles),
            capabilities=None if capabilities is None else tuple(capabilities),
            max_delegation_depth=max_delegation_depth,
            attestation=attestation,
            tool_identity=tool_identity,
            delegation_chain=None if delegation_chain is None else tuple(delegation_chain),
            context=dict(context or {}),
        )
        checked = await self._check(tool_name, tool_args, agent_id, about)
        if checked.call is not None:
            checked.call.result = _DECIDED_ONLY
            checked.call.end(None)
        return SecurityCheckResult(checked.call is not None, checked.decision, checked.event)

    @functools.wraps(check_tool_call)
    def check_tool_call_sync(self, **params: Any) -> SecurityCheckResult:
        """Does what `check_tool_call` does, without a loop."""
        return run_here(self.check_tool_call(**params))

    def protect(
        self,
        tool_name: str,
        fn: Callable[..., Any],
        *,
        agent_id: str,
        extract_tool_args: Callable[..., Mapping[str, Any]] | None = None,
        **params: Any,
    ) -> Callable[..., Any]:
        """Returns the function, guarded: it runs if the check allows it, else SecurityError.

        Coroutines stay coroutines. `extract_tool_args` gets the arguments of the function and
        returns those that rules see; without it they are bound to their names. `params` are the
        other parameters of `check_tool_call`.
        """
        about, binder = About(**params), Binder(fn)

        def args_of(positional: tuple[Any, ...], named: dict[str, Any]) -> Mapping[str, Any]:
            if extract_tool_args is not None:
                return extract_tool_args(*positional, **named)
            return binder.bind(positional, named)

        if inspect.iscoroutinefunction(fn):

            @functools.wraps(fn)
            async def guarded_async(*positional: Any, **named: Any) -> Any:
                args = args_of(positional, named)
                checked = await self._require(tool_name, args, agent_id, about)
                result, error = None, None
                try:
                    result = await fn(*positional, **named)
                except BaseException as failure:
                    error = failure
                    raise
                finally:
                    withheld = await self._executed(checked, result, error)
                if withheld is not None:
                    raise SecurityError(withheld)
                return result

            return guarded_async

        @functools.wraps(fn)
        def guarded(*positional: Any, **named: Any) -> Any:
            args = args_of(positional, named)
            checked = run_here(self._require(tool_name, args, agent_id, about))
            result, error = None, None
            try:
                result = fn(*positional, **named)
            except BaseException as failure:
                error = failure
                raise
            finally:
                withheld = run_here(self._executed(checked, result, error))
            if withheld is not None:
                raise SecurityError(withheld)
            return result

        return guarded

    # Plugins

    async def register_plugin(self, plugin: SecurityPlugin) -> None:
        """Adds a plugin. Raises ValueError if there is one with this name."""
        self._add(plugin)
        hook = getattr(plugin, "initialize", None)
        try:
            if hook is not None:
                await resolved(hook())
            self._put_rules()
        except BaseException:
            del self._plugins[plugin.name]
            raise

    async def unregister_plugin(self, name: str) -> bool:
        """Removes a plugin and destroys it; False if there is none with this name."""
        plugin = self._plugins.pop(name, None)
        if plugin is None:
            return False
        self._put_rules()
        await self._callbacks.tell(getattr(plugin, "destroy", None), where=f"{name}.destroy")
        return True

    def get_plugin(self, name: str) -> SecurityPlugin | None:
        """Returns a plugin; None if there is none with this name."""
        return self._plugins.get(name)

    # The audit log, the policy

    def get_audit_log(self) -> list[Event]:
        """Returns the newest events, the oldest first. The record of the run has all."""
        return list(self._log.events)

    def clear_audit_log(self) -> None:
        """Empties the audit log. The record of the run stays."""
        self._log.events.clear()

    def get_policy_bundle(self) -> dict[str, Any] | None:
        """Returns the bundle in force as plain data; None before `init`, if a function gives it."""
        if self._loaded is None:
            return None
        from copy import deepcopy

        return deepcopy(self._loaded.value)

    def reload_policy(self) -> None:
        """Loads the policy again; the old one stays if that fails. Raises PolicyError."""
        if self._source.is_function:
            raise SubluminalError(
                "only a function gives the policy", hint="use `await reload_policy_async()`"
            )
        self._put(self._source.load())

    async def reload_policy_async(self) -> None:
        """Does the same; asks `policy_loader` if there is one. The loop goes on meanwhile."""
        loaded = await self._source.load_async()
        await in_thread(self._put, loaded)

    async def shutdown(self) -> None:
        """Destroys plugins and leaves the run."""
        for plugin in list(self._plugins.values()):
            where = f"{plugin.name}.destroy"
            await self._callbacks.tell(getattr(plugin, "destroy", None), where=where)
        self._plugins.clear()
        self._doors.close()

    # One call

    async def _check(
        self, tool_name: str, tool_args: Mapping[str, Any], agent_id: str, about: About
    ) -> Checked:
        await self.init()
        require_types(tool_name, tool_args, agent_id)
        token = None if about.attestation is None else about.attestation.signature
        door = self._doors.of(agent_id, token)
        owner = about.owner or self._default_owner or "unknown"
        environment = about.environment or door.environment
        request = request_of(tool_name, tool_args, agent_id, about, owner, environment)
        codes = Codes(self._doors.places, self._roles, agent_id)
        return await self._checker.check(request, door, codes)

    async def _require(
        self, tool_name: str, tool_args: Mapping[str, Any], agent_id: str, about: About
    ) -> Checked:
        checked = await self._check(tool_name, tool_args, agent_id, about)
        if checked.call is None:
            raise SecurityError(checked.decision)
        return checked

    async def _executed(
        self, checked: Checked, result: Any, error: BaseException | None
    ) -> Decision | None:
        """Shows plugins how a call ended, and records it; returns why its result is withheld."""
        context = AfterExecutionContext(checked.request, checked.decision, result, error)
        withheld: Decision | None = None
        for plugin in list(self._plugins.values()):
            hook = getattr(plugin, "after_execution", None)
            if hook is None:
                continue
            try:
                said = await resolved(hook(context))
            except Exception as failure:  # noqa: BLE001 - the call has run
                await self._callbacks.failed(failure, f"{plugin.name}.after_execution")
                continue
            if isinstance(said, PluginResult) and said.decision is not None:
                found = said.decision
                await self._log.add(checked.request, found, found.outcome, plugin.name)
                if found.outcome != "ALLOW" and error is None:
                    withheld = withheld or found
        assert checked.call is not None
        checked.call.result = _WITHHELD if withheld is not None else result
        checked.call.end(error)
        return withheld

    def _add(self, plugin: SecurityPlugin) -> None:
        name = plugin.name
        if name in self._plugins:
            raise ValueError(f"there is a plugin `{name}` already")
        self._plugins[name] = plugin

    def _put(self, loaded: Loaded) -> None:
        self._doors.put_policy(loaded)
        self._loaded, self._roles = loaded, approver_roles(loaded.bundle)

    def _put_rules(self) -> None:
        rules = [each for each in self._plugins.values() if isinstance(each, RulePlugin)]
        runners = [glob for each in rules for glob in each.runners]
        self._doors.put_rules([each.snapshot for each in rules], runners)
