"""Every environment variable that Subluminal reads or sets (Pack section 5).

The reference page is generated from this table. No other file spells a variable's name.
"""

from subluminal.system import PLAIN_POSIX

TYPE_CHECKING = False
if TYPE_CHECKING:  # the import would delay the start of a server
    from collections.abc import Iterable, Mapping


class Variable:
    """One variable: its name and what it means, in Markdown.

    Not a NamedTuple, because a server's start would have to wait for the import of `typing`.
    """

    __slots__ = ("doc", "name")

    def __init__(self, name: str, doc: str) -> None:
        self.name = name
        self.doc = doc


def is_among(name: str, patterns: "Iterable[str]") -> bool:
    """Returns True if a variable's name is one of these; a `*` stands for any ending."""
    return any(
        name.startswith(known[:-1]) if known.endswith("*") else name == known for known in patterns
    )


SUB_RUN_ID = Variable(
    "SUB_RUN_ID",
    "The run that tool calls belong to. `sub run` sets it. If it is set for `sub run` itself, the "
    "run gets this id, unless a run with this id is still running.",
)
SUB_AGENT_ID = Variable("SUB_AGENT_ID", "The agent's stable name, for policy selectors.")
SUB_ENV = Variable(
    "SUB_ENV",
    "The environment: `dev`, `ci`, `prod` or any other name. Rules can match every name "
    "(`environment`); events and selectors know any other one as `unknown`.",
)
SUB_ATTESTATION = Variable(
    "SUB_ATTESTATION",
    "A JWT that proves the agent (additive): of an issuer that the agent is registered with, or of "
    "`sub agents attest`. `sub run` verifies it and does not pass it on; no server gets it.",
)
SUB_ATTESTATION_FILE = Variable(
    "SUB_ATTESTATION_FILE",
    "A file with such a JWT (additive), read again when it changes. SUB_ATTESTATION goes first.",
)
SUB_CLIENT = Variable(
    "SUB_CLIENT",
    "`claude`, `codex`, `gemini`, `opencode`, `copilot`, `cursor`, `vscode`, `headless` or "
    "`custom`; any other client is `custom`. Without it, a client is known by the name that it "
    "gives to its servers.",
)
SUB_PRINCIPAL = Variable("SUB_PRINCIPAL", "Who initiated the run: a user or a service. Optional.")
SUB_WORKLOAD = Variable(
    "SUB_WORKLOAD",
    "The workload as a JSON object (additive). A value that is not valid is ignored.",
)
SUB_RUN_META = Variable(
    "SUB_RUN_META",
    "Further data about the run, for `meta` of its run_start event (additive): a JSON object, or "
    "`KEY=VALUE` pairs separated by commas. At most 32 keys and 8,192 bytes. `sub run` refuses a "
    "value that is not valid; a shim ignores it.",
)
SUB_TAINT = Variable(
    "SUB_TAINT",
    "The level that a run starts with at most: `SYSTEM`, `TRUSTED` or `UNTRUSTED` (additive). `sub "
    "run` sets it if a level is asked for, or if the run that starts it has one. A shim takes any "
    "other value as `UNTRUSTED`.",
)
SUB_KILL_SWITCH = Variable(
    "SUB_KILL_SWITCH",
    "`1`, `true`, `yes` or `on` refuses every call of every process that has it in its environment "
    "(additive). It is read once, when the process starts. `sub kill` stops processes that run.",
)
SUB_KERNEL_SHADOW = Variable(
    "SUB_KERNEL_SHADOW",
    "Intents whose pack is asked and recorded, while the code that it is to replace decides "
    "(additive): their kinds, separated by commas, or `*` for all.",
)
SUB_KERNEL_ENFORCE = Variable(
    "SUB_KERNEL_ENFORCE",
    "Intents that their pack decides, although there is code that it is to replace (additive): "
    "their kinds, separated by commas, or `*` for all.",
)
SUB_HOME = Variable("SUB_HOME", "Where Subluminal keeps its files. Default `~/.subluminal`.")
SUB_RUNTIME_DIR = Variable(
    "SUB_RUNTIME_DIR",
    "Where sockets are. Default `$XDG_RUNTIME_DIR/subluminal`, else `$SUB_HOME/run`.",
)
SUB_POLICY = Variable("SUB_POLICY", "A policy file that replaces the repository's layer.")
SUB_DEBUG = Variable("SUB_DEBUG", "`1` prints the traceback of a bug besides writing its report.")
SUB_PASSPHRASE_FD = Variable(
    "SUB_PASSPHRASE_FD",
    "A file descriptor to read the passphrase of `sub passphrase` from, instead of a terminal.",
)
SUB_PLAIN_POSIX = Variable(
    PLAIN_POSIX,
    "`1` makes no calls that only Linux has, as on macOS: for tests, and to report a problem. Set "
    "it for every process that uses a home, or for none.",
)
CLAUDE_SESSION = "CLAUDE_CODE_SESSION_ID"
"""The session of Claude Code, which names the run of its servers if SUB_RUN_ID does not."""
COPILOT_SESSION = "COPILOT_AGENT_SESSION_ID"
"""The session of Copilot CLI, which does the same."""
NO_COLOR = Variable("NO_COLOR", "Any value turns colour off, even on a terminal.")

VARIABLES = (
    SUB_RUN_ID,
    SUB_AGENT_ID,
    SUB_ENV,
    SUB_ATTESTATION,
    SUB_ATTESTATION_FILE,
    SUB_CLIENT,
    SUB_PRINCIPAL,
    SUB_WORKLOAD,
    SUB_RUN_META,
    SUB_TAINT,
    SUB_KILL_SWITCH,
    SUB_KERNEL_SHADOW,
    SUB_KERNEL_ENFORCE,
    SUB_HOME,
    SUB_RUNTIME_DIR,
    SUB_POLICY,
    SUB_DEBUG,
    SUB_PASSPHRASE_FD,
    SUB_PLAIN_POSIX,
    NO_COLOR,
)

IDENTITY_VARIABLES = (
    SUB_RUN_ID,
    SUB_AGENT_ID,
    SUB_ENV,
    SUB_CLIENT,
    SUB_PRINCIPAL,
    SUB_WORKLOAD,
    SUB_TAINT,
)
"""The variables that `sub run` sets. A client that clears the environment must pass them on."""

TOKEN_VARIABLES = (SUB_ATTESTATION.name, SUB_ATTESTATION_FILE.name)
"""The variables that hold, or lead to, a token that proves an agent."""


def without_tokens(environ: "Mapping[str, str]") -> dict[str, str]:
    """Returns an environment for a program that must not act as the agent."""
    return {name: value for name, value in environ.items() if name not in TOKEN_VARIABLES}
