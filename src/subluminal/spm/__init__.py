"""Agent-SPM's API over `Guard`: for programs that were written for AgentSecurity.

    from subluminal.spm import AgentSecurity, rate_limiter

    security = AgentSecurity(policy_path="policy.json", plugins=[rate_limiter(max_per_minute=60)])
    result = await security.check_tool_call(
        tool_name="send_email", tool_args={"to": "a@example.com"}, agent_id="support"
    )

Names are those of Agent-SPM in snake_case. Decisions, budgets, approvals and records are those of
every door. Names are loaded when they are used.

types        what goes in and comes out: identities, requests, decisions, events, hooks
security     AgentSecurity
checking     one check: plugins, policy, callbacks
hooks        plugins of the program as plugins of its guard
answers      asks a callback about a call that needs a person, and turns its answer into a grant
doors        one guard for each agent of a program
policies     where the policy comes from
trust        TrustEvaluator, AgentRegistry, ToolRegistry
rules        plugins that are rules
guardians    the plugin that watches how agents behave
sessions     the plugin that limits the calls of a session
watching     the kill switch, and the plugin that looks at results
"""

from importlib import import_module

_MODULES = {
    "types": (
        "AfterDecisionContext",
        "AfterExecutionContext",
        "AgentActionRequest",
        "AgentAttestation",
        "AgentIdentity",
        "AgentTrustLevel",
        "BeforeCheckContext",
        "CheckOptions",
        "CheckToolCallParams",
        "Decision",
        "DecisionOutcome",
        "Event",
        "EventOutcome",
        "PluginResult",
        "PolicyBundle",
        "Reason",
        "RequestedAction",
        "SecurityCheckResult",
        "SecurityError",
        "ToolIdentity",
    ),
    "hooks": ("SecurityPlugin",),
    "security": ("AgentSecurity",),
    "guardians": ("guardian",),
    "sessions": ("session_context",),
    "trust": ("AgentRegistry", "ToolRegistry", "TrustContext", "TrustEvaluator"),
    "rules": (
        "command_governor",
        "egress_enforcer",
        "identity_enforcer",
        "rate_limiter",
    ),
    "watching": ("kill_switch", "output_validator"),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subluminal.spm.guardians import guardian
    from subluminal.spm.hooks import SecurityPlugin
    from subluminal.spm.rules import (
        command_governor,
        egress_enforcer,
        identity_enforcer,
        rate_limiter,
    )
    from subluminal.spm.security import AgentSecurity
    from subluminal.spm.sessions import session_context
    from subluminal.spm.trust import AgentRegistry, ToolRegistry, TrustContext, TrustEvaluator
    from subluminal.spm.types import (
        AfterDecisionContext,
        AfterExecutionContext,
        AgentActionRequest,
        AgentAttestation,
        AgentIdentity,
        AgentTrustLevel,
        BeforeCheckContext,
        CheckOptions,
        CheckToolCallParams,
        Decision,
        DecisionOutcome,
        Event,
        EventOutcome,
        PluginResult,
        PolicyBundle,
        Reason,
        RequestedAction,
        SecurityCheckResult,
        SecurityError,
        ToolIdentity,
    )
    from subluminal.spm.watching import kill_switch, output_validator

__all__ = [
    "AfterDecisionContext",
    "AfterExecutionContext",
    "AgentActionRequest",
    "AgentAttestation",
    "AgentIdentity",
    "AgentRegistry",
    "AgentSecurity",
    "AgentTrustLevel",
    "BeforeCheckContext",
    "CheckOptions",
    "CheckToolCallParams",
    "Decision",
    "DecisionOutcome",
    "Event",
    "EventOutcome",
    "PluginResult",
    "PolicyBundle",
    "Reason",
    "RequestedAction",
    "SecurityCheckResult",
    "SecurityError",
    "SecurityPlugin",
    "ToolIdentity",
    "ToolRegistry",
    "TrustContext",
    "TrustEvaluator",
    "command_governor",
    "egress_enforcer",
    "guardian",
    "identity_enforcer",
    "kill_switch",
    "output_validator",
    "rate_limiter",
    "session_context",
]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
