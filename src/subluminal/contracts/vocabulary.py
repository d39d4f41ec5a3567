"""Every closed set of words on the wire. Other modules use these members, never the bare words."""

from enum import IntEnum, StrEnum


class EventType(StrEnum):
    """The types of events (Pack 1.2). The first five are required, the next five optional; the last
    ten are additive."""

    RUN_START = "run_start"
    TOOL_CALL_START = "tool_call_start"
    TOOL_CALL_DECISION = "tool_call_decision"
    TOOL_CALL_END = "tool_call_end"
    RUN_END = "run_end"
    HINT_ISSUED = "hint_issued"
    POLICY_LOADED = "policy_loaded"
    SECRET_INJECTION = "secret_injection"
    SHIM_HEALTH = "shim_health"
    BREAKER_TRIP = "breaker_trip"
    TOOLS_LISTED = "tools_listed"
    APPROVAL_REQUESTED = "approval_requested"
    APPROVAL_DECIDED = "approval_decided"
    GRANT_REFUSED = "grant_refused"
    KILL_SWITCH = "kill_switch"
    CALL_ROUND = "call_round"
    PROMPT_SUBMITTED = "prompt_submitted"
    TAINT_CHANGED = "taint_changed"
    AUDIT_RECORD = "audit_record"
    INTENT_RELEASED = "intent_released"
    AGENT_CHANGED = "agent_changed"
    AGENT_RESOLVED = "agent_resolved"


class Client(StrEnum):
    """The agent client that started the run (Pack 1.3)."""

    CLAUDE = "claude"
    """Claude Code"""
    CODEX = "codex"
    """Codex"""
    GEMINI = "gemini"
    """additive: Gemini CLI"""
    OPENCODE = "opencode"
    """additive: opencode"""
    COPILOT = "copilot"
    """additive: GitHub Copilot CLI"""
    CURSOR = "cursor"
    """additive: Cursor"""
    VSCODE = "vscode"
    """additive: Visual Studio Code"""
    HEADLESS = "headless"
    """an agent without a user interface, such as a CI job"""
    CUSTOM = "custom"
    """an agent of your own, or a client that is not listed here"""
    UNKNOWN = "unknown"
    """not recognised"""


class Env(StrEnum):
    """The environment of the run (Pack 1.3)."""

    DEV = "dev"
    """a developer's machine"""
    CI = "ci"
    """a CI job"""
    PROD = "prod"
    """production"""
    UNKNOWN = "unknown"
    """not recognised"""


class EnvSource(StrEnum):
    """Additive: how the environment of a run was found out."""

    GIVEN = "given"
    """SUB_ENV or `sub run --env`"""
    CI = "ci"
    """variables of a CI system"""
    TERMINAL = "terminal"
    """the client runs in a person's terminal"""
    DESKTOP = "desktop"
    """the client runs in a person's desktop session"""
    DEFAULT = "default"
    """nothing showed it; `sub run` assumes `dev`"""


class Mode(StrEnum):
    """How a policy acts (Pack 2.1)."""

    OBSERVE = "observe"
    """decides and records, enforces nothing"""
    GUARDRAILS = "guardrails"
    """enforces the rules as written"""
    CONTROL = "control"
    """enforces, and turns BLOCK into REJECT_WITH_HINT"""


class Transport(StrEnum):
    """The protocol through which a tool call came (Pack 1.5, 7.3)."""

    MCP_STDIO = "mcp_stdio"
    """MCP over standard input and output"""
    MCP_HTTP = "mcp_http"
    """MCP over HTTP"""
    MESSAGES_API = "messages_api"
    """a model provider's messages API"""
    HTTP = "http"
    """plain HTTP"""
    AGENT_HOOK = "agent_hook"
    """additive: a hook of the client, for any tool of the agent"""
    IN_PROCESS = "in_process"
    """additive: a function call inside the agent's own process"""
    UNKNOWN = "unknown"
    """not recognised"""


class Action(StrEnum):
    """What happens to a tool call (Pack 1.6), from mildest to strictest."""

    ALLOW = "ALLOW"
    """forwarded to the server"""
    THROTTLE = "THROTTLE"
    """refused for now; the agent may retry after `backoff_ms`"""
    REJECT_WITH_HINT = "REJECT_WITH_HINT"
    """refused, and the agent is told how to do better"""
    BLOCK = "BLOCK"
    """refused"""
    TERMINATE_RUN = "TERMINATE_RUN"
    """refused, and so is every later call of the run"""


class Severity(StrEnum):
    """How much a decision or a policy change matters, from least to most."""

    INFO = "info"
    WARN = "warn"
    CRITICAL = "critical"


class Status(StrEnum):
    """How a tool call ended (Pack 1.7)."""

    OK = "OK"
    """the server returned a result"""
    ERROR = "ERROR"
    """the server returned an error, or the call was refused"""
    TIMEOUT = "TIMEOUT"
    """no answer came in time"""
    CANCELLED = "CANCELLED"
    """the client cancelled the call, or the run ended first"""


class RunStatus(StrEnum):
    """How a run ended (Pack 1.8)."""

    SUCCEEDED = "SUCCEEDED"
    """the agent exited with 0, or the client closed with no call in flight"""
    FAILED = "FAILED"
    """the agent exited with another code, a shim crashed, a call was lost, or no server worked"""
    TERMINATED = "TERMINATED"
    """a rule or a person ended the run"""
    CANCELLED = "CANCELLED"
    """the client was stopped with calls in flight"""


class ErrorClass(StrEnum):
    """Why a call did not end OK (Pack 1.7)."""

    UPSTREAM_ERROR = "upstream_error"
    """the server returned an error"""
    POLICY_BLOCK = "policy_block"
    """the call was refused"""
    TIMEOUT = "timeout"
    """no answer came in time"""
    TRANSPORT = "transport"
    """the connection to the server was lost"""
    UNKNOWN = "unknown"
    """nobody knows: the client stopped first (CANCELLED), or the shim was killed (ERROR)"""


class HintKind(StrEnum):
    """What a hint is about (Pack 3.2.4)."""

    ARG_FIX = "ARG_FIX"
    """other arguments would pass"""
    BUDGET = "BUDGET"
    """a budget is spent"""
    RATE = "RATE"
    """calls come too fast"""
    SAFETY = "SAFETY"
    """a breaker, a duplicate, or an approval that is missing"""
    OTHER = "OTHER"
    """any other refusal"""


class RuleKind(StrEnum):
    """The kinds of rules (Pack 2.3)."""

    ALLOW = "allow"
    """lets calls pass"""
    DENY = "deny"
    """refuses calls"""
    BUDGET = "budget"
    """caps the calls or the cost of a run"""
    RATE_LIMIT = "rate_limit"
    """limits calls per time"""
    BREAKER = "breaker"
    """refuses calls after repeated errors, repeats or slow calls"""
    DEDUPE = "dedupe"
    """refuses the same call twice in a window"""
    TAG = "tag"
    """adds risk classes"""
    PIN = "pin"
    """additive: watches tool definitions"""
    TAINT = "taint"
    """additive: lowers the level of the run"""
    KERNEL = "kernel"
    """additive: asks an installed pack of the kernel"""
    SEQUENCE = "sequence"
    """additive: refuses the call that completes a pattern of calls"""


class Taint(StrEnum):
    """Additive: how far the text that a run has read can be trusted, from most to least."""

    SYSTEM = "SYSTEM"
    """only text of the installation itself"""
    TRUSTED = "TRUSTED"
    """text of people and systems that the policy's author trusts"""
    UNTRUSTED = "UNTRUSTED"
    """text that anybody may have written"""


class TaintCause(StrEnum):
    """Additive: what changed the level of a run."""

    RULE = "rule"
    """a `taint` rule, or `defaults.taint` of a policy"""
    COMMAND = "command"
    """a person, with `sub taint set`"""
    SDK = "sdk"
    """a program that uses Subluminal in process"""


class Scope(StrEnum):
    """The calls that share one counter (Pack 2.5)."""

    RUN = "run"
    """all calls of the run that the rule matches"""
    TOOL = "tool"
    """the calls of tools with the same name, on any server"""
    SERVER_TOOL = "server_tool"
    """the calls of one tool on one server"""
    AGENT = "agent"
    """additive: the calls of one agent in the run"""
    AGENT_TOOL = "agent_tool"
    """additive: the calls of one agent in the run, of tools with the same name"""


class TrustLevel(StrEnum):
    """Additive: how far an agent is trusted, from least to most."""

    UNTRUSTED = "untrusted"
    """nobody knows the agent"""
    BASIC = "basic"
    """the agent is registered"""
    VERIFIED = "verified"
    """the identity of the agent is confirmed"""
    PRIVILEGED = "privileged"
    """the agent may do sensitive work"""
    SYSTEM = "system"
    """the agent belongs to the platform itself"""


class ProofKind(StrEnum):
    """Additive: how an agent proved that it is who it says."""

    NONE = "none"
    """it did not"""
    LAUNCHED = "launched"
    """`sub run --agent-id` started it"""
    ATTESTED = "attested"
    """it has a token of an issuer that a person registered"""


class AgentState(StrEnum):
    """Additive: whether a registered agent may act."""

    ACTIVE = "active"
    """it may"""
    REVOKED = "revoked"
    """every call of it is refused, for good"""


class DataClass(StrEnum):
    """Additive: what a value in the arguments of a call looks like."""

    SECRET = "SECRET"
    """keys, tokens and passwords: the shapes that are masked in records"""
    PCI = "PCI"
    """numbers of payment cards with a right check digit"""
    PII = "PII"
    """any of the classes below"""
    PII_SSN = "PII.ssn"
    """social security numbers of the United States"""
    PII_EMAIL = "PII.email"
    """e-mail addresses"""
    PII_PHONE = "PII.phone"
    """phone numbers"""


class Outcome(StrEnum):
    """Additive: a decision in Agent-SPM's words; derived from action and reason code."""

    ALLOW = "ALLOW"
    """the call passed"""
    DENY = "DENY"
    """the call was refused"""
    REQUIRE_APPROVAL = "REQUIRE_APPROVAL"
    """the call waits for approval"""
    STEP_UP = "STEP_UP"
    """the call waits for a person who authenticates again"""
    REQUIRE_TICKET = "REQUIRE_TICKET"
    """the call waits for approval with a change ticket"""
    REQUIRE_HUMAN = "REQUIRE_HUMAN"
    """the call waits for a person and for nothing else"""
    APPROVED = "APPROVED"
    """the call passed because a person approved it"""
    REJECTED = "REJECTED"
    """a person denied the call"""
    KILL_SWITCH = "KILL_SWITCH"
    """a person stopped the run, the agent or the tool"""
    RATE_LIMITED = "RATE_LIMITED"
    """the call came too soon"""
    TIMEOUT = "TIMEOUT"
    """nobody answered in time"""


class Dialect(StrEnum):
    """Additive: the language that a policy is written in."""

    PACK = "pack"
    """the Interface Pack's bundles, in YAML or JSON"""
    AGENT_SPM = "agent-spm"
    """Agent-SPM's bundles, in JSON"""


class SecretSource(StrEnum):
    """Where a secret's value is read from (Pack 4.1)."""

    ENV = "env"
    """an environment variable"""
    KEYCHAIN = "keychain"
    """the keychain of the operating system"""
    FILE = "file"
    """the secrets store in SUB_HOME"""


class Layer(StrEnum):
    """Additive: where a policy comes from, in order of precedence on a tie (policy-layers)."""

    PACK = "pack"
    """a pack of the kernel, inside the agent's own process"""
    MANAGED = "managed"
    """the fleet's policy"""
    USER = "user"
    """the user's own policy"""
    REPOSITORY = "repository"
    """the policy of the repository that the agent works in"""


class Requirement(StrEnum):
    """Additive: what a person must do before a rule lets a call pass (no-call-waits)."""

    APPROVAL = "approval"
    """approve the call"""
    STEP_UP = "step_up"
    """type the passphrase of the home, and so approve the call"""
    TICKET = "ticket"
    """approve the call with a change ticket"""
    HUMAN = "human"
    """do the action in place of the agent, or approve the call at a terminal"""
    CONFIRMATION = "confirmation"
    """confirm exactly these arguments"""


class ApprovalAnswer(StrEnum):
    """Additive: a person's answer to a pending approval."""

    APPROVED = "approved"
    DENIED = "denied"


class GrantProblem(StrEnum):
    """Additive: why a grant was refused (local-is-not-trusted)."""

    SEAL = "seal"
    """its seal is wrong: the grant was edited, or made under another SUB_HOME"""
    RUN = "run"
    """it was made for another run"""
    STATE = "state"
    """the run's state was removed since, so earlier uses are unknown"""
    CALL = "call"
    """it was made for another call or another rule"""
    REQUIREMENT = "requirement"
    """it was given without what the rule requires, such as a ticket"""
    EXPIRED = "expired"
    """it has expired"""
    SPENT = "spent"
    """all its uses are spent"""
    UNCOUNTED = "uncounted"
    """its use could not be counted, so the grant was not used"""


class StopScope(StrEnum):
    """Additive: what the kill switch stops."""

    RUN = "run"
    """one run"""
    AGENT = "agent"
    """all runs of one agent"""
    TOOL = "tool"
    """one tool of one server"""
    ALL = "all"
    """every call on this machine"""


class SwitchState(StrEnum):
    """Additive: what was done with the kill switch."""

    KILLED = "killed"
    """`sub kill` stopped something"""
    REVIVED = "revived"
    """`sub revive` lifted the stop"""


class ReasonCode(StrEnum):
    """The reason codes of Subluminal itself. An `allow` or `deny` rule names its own `reason_code`,
    which its author chooses."""

    DEFAULT_ALLOW = "DEFAULT_ALLOW"
    """No rule allowed or refused this call, so it passed.

    Nothing needs to be done. To refuse every call that no rule allows, end the policy with a `deny`
    rule whose `match` is `{}`."""
    POLICY_NOT_APPLICABLE = "POLICY_NOT_APPLICABLE"
    """The policy's `selectors` do not match this run, so its rules were not evaluated and the call
    passed.

    If the policy should apply, compare its `selectors` with the `env`, `agent_id`, `client` and
    `workload` in the events of the run. An empty `selectors: {}` applies to every run."""
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"
    """The budget of a `budget` rule is spent: this call exceeds its `limit_calls` or its
    `limit_cost_units`.

    The agent should finish with what it has: a budget does not refill during a run. To let more
    calls pass, raise the limit of the rule that `rule_id` names, or start a new run."""
    RATE_LIMITED = "RATE_LIMITED"
    """Calls come faster than a `rate_limit` rule allows: its token bucket has too few tokens left.

    Wait for `backoff_ms` milliseconds, then repeat the call. If the limit is too tight, raise
    `capacity` or `refill_tokens` of the rule that `rule_id` names."""
    BREAKER_TRIPPED = "BREAKER_TRIPPED"
    """A `breaker` rule counted too many errors, identical calls or slow calls in its window.

    Look at the calls before this one: probably the agent repeats itself, or the server is failing.
    Nothing has to be reset: calls pass again when the window is over."""
    DEDUPE_DUPLICATE = "DEDUPE_DUPLICATE"
    """A call with the same arguments was forwarded less than `window_ms` ago, and a `dedupe` rule
    refuses the repeat.

    Use the result of the first call. To repeat the call on purpose, change its arguments or wait
    until the window is over."""
    EVALUATION_ERROR = "EVALUATION_ERROR"
    """The policy could not be evaluated for this call, so its `decision_on_error` decided.

    Read the summary of the decision: it says what failed. The usual causes are arguments that are
    too large to inspect, and names or counters beyond the documented limits. Then run
    `sub policy lint` on the policy."""
    AMBIGUOUS_MESSAGE = "AMBIGUOUS_MESSAGE"
    """The client sent a message that two JSON parsers may read differently. The server might act on
    something else than the policy judged, so `decision_on_error` decided.

    Send strict JSON: no duplicate keys, no NaN or Infinity, no lone surrogates, at most 512 levels
    of nesting. `sub canonical` says what is wrong with a text."""
    ROUNDS_EXCEEDED = "ROUNDS_EXCEEDED"
    """The server asked for more input again and again (`input_required` of MCP), and the call has
    taken more rounds than `max_rounds` of the settings allows. The round was refused, and the call
    has ended.

    Look at the call with `sub show`: probably the server never accepts the client's answers. If the
    tool really needs that many rounds, raise `max_rounds` in the `[limits]` section of
    `config.toml`."""
    BATCH_REFUSED = "BATCH_REFUSED"
    """The client sent several messages as one batch, and a call in the batch was refused. A batch
    is forwarded whole or not at all, so this call was not forwarded either.

    Send the call again without the refused one. Nothing is wrong with the call itself: it counts as
    an attempt in budgets and rates, but not as a call that was forwarded."""
    SERVER_UNREACHABLE = "SERVER_UNREACHABLE"
    """The server no longer reads its input, so the call could not be forwarded.

    Restart the server from the client. The server's own output, on its stderr, may say why it
    stopped reading."""
    JOURNAL_UNAVAILABLE = "JOURNAL_UNAVAILABLE"
    """The journal cannot be written, so the decision could not be recorded and `decision_on_error`
    decided.

    Free some disk space, and check that the journal folder below SUB_HOME is writable. A
    `shim_health` event counts the events that were lost."""
    RUN_TERMINATED = "RUN_TERMINATED"
    """This run was ended earlier, by a rule or by a person with `sub kill`. Every later call of the
    run is refused.

    The summary says which rule or person ended the run. If it was a person, `sub revive` lets the
    run continue. If it was a rule, start a new run."""
    STATE_LOST = "STATE_LOST"
    """The file with the counters of this run was removed, although the run has journals. A new file
    would be a new budget, so every call of the run is refused.

    Find out who removed the file below `state/runs` in SUB_HOME. If it was you, or if the journals
    were copied from another machine, let the run go on with `sub revive RUN_ID`: its budgets and
    windows then start from zero. A new run is not affected."""
    KILL_SWITCH = "KILL_SWITCH"
    """A person stopped this tool, this agent or all agents with `sub kill`.

    The summary says who did it, and why. A person can lift the stop with `sub revive`."""
    APPROVAL_GRANTED = "APPROVAL_GRANTED"
    """A rule would have refused this call, and a person lets the call pass: by `sub approve`, or by
    `sub promote --session`.

    Nothing needs to be done. `grant` in the decision says who let the call pass."""
    CLIENT_ASKED = "CLIENT_ASKED"
    """A rule lets this call pass only if a person approves or confirms it, and the agent's client
    asks the person who sits at it. The call ends CANCELLED if the person says no.

    Nothing needs to be done. `ask = "sub"` under `[hooks]` in the settings has such calls approved
    with `sub approve` instead."""
    APPROVAL_DENIED = "APPROVAL_DENIED"
    """A rule requires a person's approval, and a person has denied this call.

    The agent should not repeat the call: the summary gives the person's reason. The person can
    still approve it with `sub approve`."""
    APPROVAL_TIMEOUT = "APPROVAL_TIMEOUT"
    """A program waited for a person's approval of this call, and nobody answered in time.

    A person can still approve the call with `sub approve`. Then the agent repeats the call with the
    same arguments."""
    PLUGIN_ERROR = "PLUGIN_ERROR"
    """A plugin of the program around this call failed, so the call was refused.

    The summary names the plugin and its error. Mend the plugin; if calls should pass while it
    fails, set its `fail_open` to true."""
    AGENT_REVOKED = "AGENT_REVOKED"
    """A person revoked this agent with `sub agents revoke`. All its calls are refused, with and
    without a policy.

    A revoked agent never comes back. Register a new agent under another id."""
    POLICY_EXPIRED = "POLICY_EXPIRED"
    """The policy has passed its `expires_at`. Until a newer one is in force, every call that it
    applies to is refused.

    Publish the policy again with a later `expires_at`."""
    SEQUENCE_MATCHED = "SEQUENCE_MATCHED"
    """The calls of this run so far and this call would complete a pattern that a `sequence` rule
    forbids.

    The summary names the pattern. Another call may pass; this one is refused in this run, until
    `within_ms` of the rule is over."""
    APPROVAL_REQUIRED = "APPROVAL_REQUIRED"
    """A rule lets this call pass only if a person approves it. The call was refused, and is
    waiting for approval.

    A person lists the waiting calls with `sub approvals` and approves this one with `sub approve`.
    Then the agent repeats the call with the same arguments."""
    STEP_UP_REQUIRED = "STEP_UP_REQUIRED"
    """A rule lets this call pass only if the person behind the run authenticates again. The call
    was refused, and is waiting for approval.

    `sub approvals` lists the call. `sub approve` approves it, and asks for the passphrase of the
    home, which must be typed at a terminal; `sub passphrase set` sets one. Then the agent repeats
    the call with the same arguments."""
    TICKET_REQUIRED = "TICKET_REQUIRED"
    """A rule lets this call pass only with a change ticket. The call was refused, and is waiting
    for approval.

    Open a ticket and approve the call with it: `sub approvals` lists the call, `sub approve` with
    `--ticket` approves it, if the ticket fits `[approvals]` in the settings. Then the agent repeats
    the call with the same arguments."""
    HUMAN_REQUIRED = "HUMAN_REQUIRED"
    """A rule leaves this action to a person. The call was refused, and is waiting for approval.

    A person does the action without the agent, or approves the call at a terminal: `sub approvals`
    lists it, `sub approve` approves it. No script, no `sub promote` and no prompt of the client can
    do that. After an approval the agent repeats the call with the same arguments."""
    CONFIRMATION_REQUIRED = "CONFIRMATION_REQUIRED"
    """A rule lets this call pass only if a person confirms its arguments. The call was refused, and
    is waiting for approval.

    A person reads the arguments in `sub approvals` and confirms them with `sub approve`. Then the
    agent repeats the call with the same arguments."""
    SIGNAL_REQUIRED = "SIGNAL_REQUIRED"
    """A pack lets this call pass only after something else has happened. The call was refused.

    `defer` in the decision names the signal that the pack waits for, and for how long. The agent
    goes on with other work, and repeats the call when the signal has come."""
    DEFERRED = "DEFERRED"
    """A pack lets this call pass later. The call was refused.

    Wait for `backoff_ms` milliseconds, then repeat the call."""
    EXECUTIONS_UNAVAILABLE = "EXECUTIONS_UNAVAILABLE"
    """The execution ledger could not be read or written, so nobody can tell whether this intent has
    run already. Nothing was executed.

    The summary says what is wrong. Check `executions` in the `[kernel]` section of `config.toml`,
    the file `state/executions.db` below SUB_HOME, or the database server."""
    LEGACY_REFUSED = "LEGACY_REFUSED"
    """The code that a pack is to replace refused this call. The rollout leaves the decision to that
    code.

    Nothing is wrong with the pack. `SUB_KERNEL_ENFORCE` names the intents that packs decide."""
    REWRITE_OFFERED = "REWRITE_OFFERED"
    """A pack would execute this call with other arguments. The call was refused, because a call is
    never changed on its way.

    If these arguments would pass, the hint has them: repeat the call with them."""


class ErrorCode(IntEnum):
    """JSON-RPC error codes of refused calls (Pack 3.2.1). They change only with a MAJOR version."""

    POLICY_BLOCKED = -32081
    POLICY_THROTTLED = -32082
    REJECT_WITH_HINT = -32083
    RUN_TERMINATED = -32084


class McpErrorCode(IntEnum):
    """Error codes outside the range that MCP 2026-07-28 reserves: the setting `codes = "mcp"`."""

    POLICY_BLOCKED = -31081
    POLICY_THROTTLED = -31082
    REJECT_WITH_HINT = -31083
    RUN_TERMINATED = -31084


ACTION_STRICTNESS = {action: rank for rank, action in enumerate(Action)}
POLICY_LAYERS = (Layer.MANAGED, Layer.USER, Layer.REPOSITORY)
"""Layers that are written as policies, in order of precedence."""
TAINT_RANK = {level: rank for rank, level in enumerate(Taint)}
"""Sort key of a level: a higher one is less trusted."""
TRUST_RANK = {level: rank for rank, level in enumerate(TrustLevel)}
"""Number of a trust level: a higher one is trusted more."""
SEVERITY_RANK = {severity: rank for rank, severity in enumerate(Severity)}
