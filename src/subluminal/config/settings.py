"""Every setting of `config.toml`, with its default and its documentation.

The docstring under a field is its reference documentation; the page is generated from here.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from subluminal.contracts.bindings import SecretBinding
from subluminal.contracts.limits import MAX_INSPECT_BYTES, MAX_PREVIEW_BYTES

Count = Annotated[int, Meta(ge=0)]
Size = Annotated[int, Meta(ge=1)]

POSTGRES_SCHEMES = ("postgresql://", "postgres://")
"""How the URL of a PostgreSQL server begins."""


class _Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Unknown keys are errors: a misspelt setting must not silently keep its default."""


class LedgerSettings(_Section, frozen=True, kw_only=True):
    """How long calls stay in the ledger."""

    keep_days: Size = 90
    """Calls older than this are removed."""
    max_bytes: Size = 10_737_418_240
    """When the ledger is larger, its oldest previews are removed, then its oldest calls."""
    idle_exit_s: Count = 900
    """ledgerd exits after this many seconds in which no client had a server running, no events came
    and nobody was connected to it; commands start it again when they need it. 0: it never exits by
    itself."""


class RecordSettings(_Section, frozen=True, kw_only=True):
    """What is recorded of a call's contents."""

    mode: Literal["off", "metadata", "full"] = "metadata"
    """`off`: no previews and no audit records of packs; `metadata`: redacted previews; `full`:
    redacted previews, uncut up to `max_inspect_bytes`, and the states that packs decided by."""


class LimitSettings(_Section, frozen=True, kw_only=True):
    """Size limits for messages and files."""

    max_inspect_bytes: Size = MAX_INSPECT_BYTES
    """Messages larger than this are forwarded whole, but not inspected."""
    max_preview_bytes: Count = MAX_PREVIEW_BYTES
    """Largest size of one preview."""
    max_rounds: Size = 32
    """Most rounds of one call, if its server asks for input (`input_required` of MCP 2026-07-28).
    The next round is refused."""
    max_spool_bytes: Count = 1_074_790_400
    """A line from the client above `max_inspect_bytes` is kept on disk until it is decided. This is
    the largest such line (1 GiB and an envelope)."""
    max_journal_bytes: Size = 67_108_864
    """A journal file is rotated at this size."""


class ShimSettings(_Section, frozen=True, kw_only=True):
    """How shims answer clients."""

    codes: Literal["pack", "mcp"] = "pack"
    """`pack`: error codes -32081 to -32084; `mcp`: -31081 to -31084, outside the range that MCP
    2026-07-28 reserves."""


class HookSettings(_Section, frozen=True, kw_only=True):
    """How `sub hook` serves the hooks of agents' clients."""

    timeout_ms: Annotated[int, Meta(ge=1000, le=9000)] = 5000
    """How long a hook waits for the decision before `--on-error` applies. Clients wait for 10
    seconds."""
    ask: Literal["client", "sub"] = "client"
    """Who asks the person about a call that a rule lets pass only with approval or confirmation:
    `client` leaves it to the client, if it can ask and no passphrase is set; `sub` always waits for
    `sub approve`. Tickets, step-ups and what is left to a human are never left to the client."""
    prompts: Literal["off", "metadata"] = "off"
    """`metadata` records the size and the hash of each prompt. The text is never recorded."""


class ApprovalSettings(_Section, frozen=True, kw_only=True):
    """Which tickets `sub approve --ticket` accepts."""

    ticket_pattern: str | None = None
    """Regular expression (RE2) that must match the whole ticket, such as `OPS-[0-9]+`. Without it,
    any text is accepted."""
    ticket_check: list[str] = field(default_factory=list)
    """A command that is asked about each ticket: program first, started without a shell in
    SUB_HOME, with the ticket as its last argument. Exit code 0 accepts the ticket. Otherwise the
    last line that the command printed is shown, and nothing is approved."""
    ticket_check_ms: Annotated[int, Meta(ge=100, le=60_000)] = 10_000
    """How long `ticket_check` may take. A ticket is refused if the command takes longer."""


class RedactPattern(_Section, frozen=True, kw_only=True):
    """A pattern of secrets that is masked besides the built-in ones."""

    name: str
    """Name in the mark that replaces the secret: `[REDACTED:name]`."""
    pattern: str
    """Regular expression (RE2). If it has groups, only what the groups match is masked."""


class RedactSettings(_Section, frozen=True, kw_only=True):
    """What is masked in previews, messages and logged stderr, besides the values of bindings."""

    patterns: list[RedactPattern] = field(default_factory=list)
    """Your own patterns."""
    ignore: list[str] = field(default_factory=list)
    """Names of built-in patterns that are turned off, because they match what is not secret."""


class SecretsSettings(_Section, frozen=True, kw_only=True):
    """The file store, and how long a keychain may take."""

    passphrase_file: str | None = None
    """A file with mode 0600 whose contents encrypt the file store; keep it on another disk, or have
    a vault write it. Without this file the store is encrypted with a key in the keychain, or not
    at all if there is no keychain."""
    keychain_wait_ms: Count = 20_000
    """How long the start of a server waits for the keychain to be unlocked. After that the server
    is not started."""


class TargetSettings(_Section, frozen=True, kw_only=True):
    """Which arguments of a tool say what a call touches. At least one is required."""

    command: str | None = None
    """Name of the argument that is a shell command line, or a list of words."""
    path: str | None = None
    """Name of the argument that is a path, or a list of paths."""
    url: str | None = None
    """Name of the argument that is a URL, or a list of URLs."""
    patch: str | None = None
    """Name of the argument that is a patch: `apply_patch` blocks or a unified diff."""
    access: Literal["read", "write"] | None = None
    """What the tool does with `path`. By default it may do both."""


class PolicySettings(_Section, frozen=True, kw_only=True):
    """What policies must have to come into force."""

    hmac_key_file: str | None = None
    """A file with mode 0600 that holds the key of Agent-SPM's bundles. Every such bundle must then
    carry a signature made with `sub policy sign`. The repository layer (`--policy` and SUB_POLICY
    too) accepts no other policy, because policies in other languages have no signature. Takes
    effect when a shim starts."""


class ServerSettings(_Section, frozen=True, kw_only=True):
    """One MCP server, by its name in the client's configuration."""

    grace_ms: Count = 2000
    """How long the upstream server may take to exit by itself after its stdin was closed."""
    call_timeout_ms: Size | None = None
    """A call that takes longer is recorded as TIMEOUT. The call itself is not interrupted."""
    command: list[str] | None = None
    """The command line that a person approved for this server's stored secrets, program first, by
    its absolute path. Bindings from `file` and `keychain` serve no other command.
    `sub secrets approve` writes it. Takes effect at the server's next start."""
    env: dict[str, str] = field(default_factory=dict)
    """Variables that the approved `command` gets with these values, whatever the client sets.
    Takes effect at the server's next start."""
    pass_env: list[str] = field(default_factory=list)
    """Variables of the client that are withheld by default and that this server gets anyway. Takes
    effect at its next start."""
    secret_bindings: list[SecretBinding] = field(default_factory=list)
    """Secrets that this server gets as environment variables. Takes effect at its next start."""
    targets: dict[str, TargetSettings] = field(default_factory=dict)
    """By tool: the arguments that say what a call touches, for rules that match `targets`. The
    clients' own tools are known."""


class KernelSettings(_Section, frozen=True, kw_only=True):
    """The kernel inside agents that are written in Python."""

    executions: str = "sqlite"
    """Where executions are kept, so that a retry does not run one twice: `sqlite` for this home
    (`state/executions.db`), `postgresql://USER@HOST/DATABASE` for a fleet, `off` to keep none. Keep
    the password out of this file: libpq reads it from PGPASSWORD or `~/.pgpass`."""


class TrustSettings(_Section, frozen=True, kw_only=True):
    """How far agents are trusted."""

    quiet_hours: bool = False
    """Trust registered agents less before 6:00 and after 22:59, local time. Agents that work at
    night may lose a level."""


class Settings(_Section, frozen=True, kw_only=True):
    """The whole of `config.toml`. Every section may be left out."""

    ledger: LedgerSettings = LedgerSettings()
    record: RecordSettings = RecordSettings()
    limits: LimitSettings = LimitSettings()
    shim: ShimSettings = ShimSettings()
    hooks: HookSettings = HookSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    redact: RedactSettings = RedactSettings()
    secrets: SecretsSettings = SecretsSettings()
    kernel: KernelSettings = KernelSettings()
    trust: TrustSettings = TrustSettings()
    policy: PolicySettings = PolicySettings()
    servers: dict[str, ServerSettings] = field(default_factory=dict)
