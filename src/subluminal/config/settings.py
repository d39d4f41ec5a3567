"""Every setting of `config.toml`, with its default and its documentation.

The docstring under a field is its reference documentation; the page is generated from here.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from subluminal.contracts.bindings import SecretBinding
from subluminal.contracts.limits import MAX_INSPECT_BYTES, MAX_PREVIEW_BYTES

Count = Annotated[int, Meta(ge=0)]
Size = Annotated[int, Meta(ge=1)]


class _Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Unknown keys are errors: a misspelt setting must not silently keep its default."""


class LedgerSettings(_Section, frozen=True, kw_only=True):
    """How long the ledger remembers."""

    keep_days: Size = 90
    """Calls older than this are removed."""
    max_bytes: Size = 10_737_418_240
    """A larger ledger forgets its oldest previews, then its oldest calls."""


class RecordSettings(_Section, frozen=True, kw_only=True):
    """What is recorded of a call's contents."""

    mode: Literal["off", "metadata", "full"] = "metadata"
    """`off`: no previews; `metadata`: redacted previews; `full`: redacted previews, uncut up to
    `max_inspect_bytes`."""


class LimitSettings(_Section, frozen=True, kw_only=True):
    """Bounds of the data plane."""

    max_inspect_bytes: Size = MAX_INSPECT_BYTES
    """A larger message is forwarded whole, but not inspected."""
    max_preview_bytes: Count = MAX_PREVIEW_BYTES
    """Size of one preview."""
    max_spool_bytes: Count = 1_074_790_400
    """A client line above `max_inspect_bytes` waits on disk, up to this (1 GiB and an envelope),
    until it is decided."""
    max_journal_bytes: Size = 67_108_864
    """A journal file is rotated at this size."""


class ShimSettings(_Section, frozen=True, kw_only=True):
    """How shims speak."""

    codes: Literal["pack", "mcp"] = "pack"
    """`pack`: error codes -32081 to -32084; `mcp`: -31081 to -31084, outside the range that MCP
    2026-07-28 reserves."""


class RedactPattern(_Section, frozen=True, kw_only=True):
    """A shape of token that is masked besides the built-in ones."""

    name: str
    """What the mark says: `[REDACTED:name]`."""
    pattern: str
    """RE2. If it has groups, only what they catch is masked."""


class RedactSettings(_Section, frozen=True, kw_only=True):
    """What is masked in previews, messages and logged stderr, besides the values of bindings."""

    patterns: list[RedactPattern] = field(default_factory=list)
    """Shapes of your own."""
    ignore: list[str] = field(default_factory=list)
    """Built-in shapes that are not masked, by name; for one that hits what is no secret."""


class SecretsSettings(_Section, frozen=True, kw_only=True):
    """The file store, and how long a keychain may take."""

    passphrase_file: str | None = None
    """A 0600 file whose contents encrypt the file store, on another disk or from a vault. Without
    it a key in the keychain does, where there is one; else the store is plain."""
    keychain_wait_ms: Count = 20_000
    """How long a server waits for the keychain to be unlocked before it is not started."""


class ServerSettings(_Section, frozen=True, kw_only=True):
    """One MCP server, by its name in the client's configuration."""

    grace_ms: Count = 2000
    """How long the upstream server has to end by itself after its stdin closed."""
    call_timeout_ms: Size | None = None
    """A call that takes longer is recorded as TIMEOUT. The call itself is not cut off."""
    pass_env: list[str] = field(default_factory=list)
    """Credentials of the client that this server may see all the same, from its next start on."""
    secret_bindings: list[SecretBinding] = field(default_factory=list)
    """Secrets that this server gets as environment variables. Holds from its next start."""


class Settings(_Section, frozen=True, kw_only=True):
    """The whole of `config.toml`. Every section may be left out."""

    ledger: LedgerSettings = LedgerSettings()
    record: RecordSettings = RecordSettings()
    limits: LimitSettings = LimitSettings()
    shim: ShimSettings = ShimSettings()
    redact: RedactSettings = RedactSettings()
    secrets: SecretsSettings = SecretsSettings()
    servers: dict[str, ServerSettings] = field(default_factory=dict)
