"""Secret bindings: which variable of an upstream server is filled from where (Pack 4.1)."""

from msgspec import Struct

from subluminal.contracts.vocabulary import SecretSource


class SecretBinding(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One secret, injected when the upstream server is started. Never holds the value."""

    inject_as: str
    """variable that the upstream server gets"""
    secret_ref: str
    """name in the source"""
    source: SecretSource
    redact: bool = True


class ServerBindings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All bindings of one server."""

    server_name: str
    secret_bindings: list[SecretBinding]
