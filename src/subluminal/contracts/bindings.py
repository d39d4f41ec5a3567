"""Secret bindings: which environment variable of a server gets which secret (Pack 4.1)."""

from msgspec import Struct

from subluminal.contracts.vocabulary import SecretSource


class SecretBinding(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One secret that is injected when the server is started. Never contains the secret itself."""

    inject_as: str
    """name of the environment variable that the server gets"""
    secret_ref: str
    """name of the secret in its source"""
    source: SecretSource
    """where the secret is read from"""
    redact: bool = True
    """whether the secret is masked in everything that is recorded"""


class ServerBindings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All secret bindings of one server."""

    server_name: str
    """exact name of the server in the client's configuration"""
    secret_bindings: list[SecretBinding]
    """the server's secrets"""
