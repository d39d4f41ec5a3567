"""AgentSecurity: checks the tool calls of a program, and guards its functions."""

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar, Unpack, cast

from subluminal.adapters.in_process.guarding.arguments import Binder
from subluminal.adapters.in_process.guarding.functions import guarded
from subluminal.adapters.in_process.guarding.reports import OnError, Reports
from subluminal.adapters.in_process.guarding.steps import Ask, Pause, Steps, run, run_async
from subluminal.errors import SubluminalError
from subluminal.spm.answers import Answering
from subluminal.spm.answers import Ask as AskCallback
from subluminal.spm.checking import Check, CheckedCall
from subluminal.spm.doors import Doors, Touching
from subluminal.spm.hooks import SecurityPlugin
from subluminal.spm.policies import Loaded, PolicyLoader, PolicySource
from subluminal.spm.reading import AuditLog, Codes, approver_roles, request_of, require_types
from subluminal.spm.rules import RulePlugin
from subluminal.spm.types import (
    About,
    AgentActionRequest,
    AgentAttestation,
    AgentTrustLevel,
    CheckOptions,
    CheckToolCallParams,
    Decision,
    Event,
    PolicyBundle,
    SecurityCheckResult,
    SecurityError,
    ToolIdentity,
)

_P = ParamSpec("_P")
_R = TypeVar("_R")

Told = Callable[[AgentActionRequest, Decision], object]
_LOOK_S = 0.005


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
        on_approval_required: AskCallback | None = None,
        on_step_up_required: AskCallback | None = None,
        on_ticket_required: AskCallback | None = None,
        on_human_required: AskCallback | None = None,
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
        self._reports = Reports(on_error)
        self._log = AuditLog(max_audit_log_size, self._reports, on_audit_event, on_allow, on_deny)
        self._plugins: dict[str, SecurityPlugin] = {}
        for plugin in plugins:
            self._add(plugin)
        self._fresh = list(self._plugins.values())
        """plugins that are not initialized yet"""
        self._answering = Answering(
            {
                "REQUIRE_APPROVAL": on_approval_required,
                "STEP_UP": on_step_up_required,
                "REQUIRE_TICKET": on_ticket_required,
                "REQUIRE_HUMAN": on_human_required,
            },
            approval_timeout_ms,
            self._reports,
            {},
        )
        self._starting: dict[int, object] = {}
        """which check loads the policy and initializes plugins, by process"""
        self._default_owner = default_owner
        self._doors = Doors(home, run_id, default_environment, self._reports)
        self._loaded: Loaded | None = None
        self._roles: dict[str, str | None] = {}
        self._put_rules()
        if not self._source.is_function:
            self._put(self._source.load())

    # Checks

    async def init(self) -> None:
        """Loads the policy and initializes plugins, once. A check does it if nobody has."""
        await run_async(self._ready())

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
            data_labels=data_labels,
            risk_hints=risk_hints,
            session_id=session_id,
            parent_agent_id=parent_agent_id,
            agent_type=agent_type,
            trust_level=trust_level,
            roles=roles,
            capabilities=capabilities,
            max_delegation_depth=max_delegation_depth,
            attestation=attestation,
            tool_identity=tool_identity,
            delegation_chain=delegation_chain,
            context=context,
        )
        return await run_async(self._checked(tool_name, tool_args, agent_id, about))

    def check_tool_call_sync(self, **params: Unpack[CheckToolCallParams]) -> SecurityCheckResult:
        """Does what `check_tool_call` does, without a loop."""
        return run(self._checked_with(**params))

    def protect(
        self,
        tool_name: str,
        fn: Callable[_P, _R],
        *,
        agent_id: str,
        extract_tool_args: Callable[_P, Mapping[str, Any]] | None = None,
        **params: Unpack[CheckOptions],
    ) -> Callable[_P, _R]:
        """Returns the function, guarded: it runs if the check allows it, else SecurityError.

        Coroutines and generators stay what they are. `extract_tool_args` gets the arguments of the
        function and returns those that rules see; without it they are bound to their names.
        `params` are the other parameters of `check_tool_call`.
        """
        about = About(**params)
        args_of = extract_tool_args or _bound_by(fn)

        def enter(positional: Any, named: Any) -> CheckedCall:
            args = args_of(*positional, **named)
            return CheckedCall(lambda: self._opened(tool_name, args, agent_id, about))

        return cast("Callable[_P, _R]", guarded(fn, enter, _never_told))

    # Plugins

    async def register_plugin(self, plugin: SecurityPlugin) -> None:
        """Adds a plugin, initialized. Raises ValueError if there is one with this name."""
        self._require_new(plugin)
        await run_async(_initialized(plugin))
        self._add(plugin)
        self._put_rules()

    async def unregister_plugin(self, name: str) -> bool:
        """Removes a plugin and destroys it; False if there is none with this name."""
        plugin = self._plugins.pop(name, None)
        if plugin is None:
            return False
        self._put_rules()
        await run_async(self._destroyed(plugin))
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
        import asyncio

        loaded = await run_async(self._source.loaded())
        await asyncio.to_thread(self._put, loaded)

    async def shutdown(self) -> None:
        """Destroys plugins and leaves the run."""
        for plugin in list(self._plugins.values()):
            await run_async(self._destroyed(plugin))
        self._plugins.clear()
        self._doors.close()

    # One call

    def _checked_with(
        self, *, tool_name: str, tool_args: Mapping[str, Any], agent_id: str, **params: Any
    ) -> Steps[SecurityCheckResult]:
        return self._checked(tool_name, tool_args, agent_id, About(**params))

    def _checked(
        self, tool_name: str, tool_args: Mapping[str, Any], agent_id: str, about: About
    ) -> Steps[SecurityCheckResult]:
        call = CheckedCall(lambda: self._opened(tool_name, tool_args, agent_id, about))
        allowed = True
        try:
            yield from call.checked()
        except SecurityError:
            allowed = False
        else:
            call.end_unexecuted()
        check = call.check
        assert check is not None
        assert check.decision is not None
        assert check.first is not None
        return SecurityCheckResult(allowed, check.decision, check.first)

    def _opened(
        self, tool_name: str, tool_args: Mapping[str, Any], agent_id: str, about: About
    ) -> Steps[Check]:
        require_types(tool_name, tool_args, agent_id)
        yield from self._ready()
        token = None if about.attestation is None else about.attestation.signature
        door = self._doors.of(agent_id, token)
        owner = about.owner or self._default_owner or "unknown"
        environment = about.environment or door.environment
        request = request_of(tool_name, tool_args, agent_id, about, owner, environment)
        codes = Codes(self._doors.places, self._roles, agent_id)
        plugins = list(self._plugins.values())
        return Check(request, door, codes, self._log, plugins, self._answering)

    def _ready(self) -> Steps[None]:
        """Loads the policy and initializes plugins, if nobody has; others wait for it."""
        me, pid = object(), os.getpid()
        while self._loaded is None or self._fresh:
            if self._starting.setdefault(pid, me) is not me:
                yield Pause(_LOOK_S)
                continue
            try:
                if self._loaded is None:
                    self._put((yield from self._source.loaded()))
                while self._fresh:
                    yield from _initialized(self._fresh[0])
                    del self._fresh[0]
            finally:
                del self._starting[pid]

    def _destroyed(self, plugin: SecurityPlugin) -> Steps[None]:
        hook, where = getattr(plugin, "destroy", None), f"destroy of plugin {plugin.name}"
        yield from self._log.tell(hook, where=where)

    def _require_new(self, plugin: SecurityPlugin) -> None:
        name = getattr(plugin, "name", None)
        if not isinstance(name, str) or not name:
            raise ValueError("a plugin must have a `name`, which is a text")
        if name in self._plugins:
            raise ValueError(f"there is a plugin `{name}` already")

    def _add(self, plugin: SecurityPlugin) -> None:
        self._require_new(plugin)
        self._plugins[plugin.name] = plugin

    def _put(self, loaded: Loaded) -> None:
        self._doors.put_policy(loaded)
        self._loaded, self._roles = loaded, approver_roles(loaded.bundle)

    def _put_rules(self) -> None:
        rules = [each for each in self._plugins.values() if isinstance(each, RulePlugin)]
        touching = Touching(
            commands=tuple(glob for each in rules for glob in each.commands),
            urls=tuple(glob for each in rules for glob in each.urls),
        )
        self._doors.put_rules([each.snapshot for each in rules], touching)


# For people who ask for its signature; type checkers read that of `params`.
functools.update_wrapper(
    AgentSecurity.check_tool_call_sync, AgentSecurity.check_tool_call, assigned=(), updated=()
)


def _initialized(plugin: SecurityPlugin) -> Steps[None]:
    hook = getattr(plugin, "initialize", None)
    if hook is not None:
        yield Ask(hook, ())


def _bound_by(fn: Callable[..., Any]) -> Callable[..., Mapping[str, Any]]:
    binder = Binder(fn)
    return lambda *positional, **named: binder.bind(positional, named)


def _never_told(refused: Exception) -> Any:
    """A check raises SecurityError, so no refusal gets here."""
    raise refused
