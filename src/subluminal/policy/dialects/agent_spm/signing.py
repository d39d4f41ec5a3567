"""The signature of a bundle: HMAC-SHA256 over its canonical JSON without `signature`, in hex.

Agent-SPM signs less than it seems to: its serializer is given the names of the bundle's own members
as a filter, which drops every member of every rule. Whoever can edit such a bundle can change all
its rules. That form is only accepted if a person asks for it.
"""

from typing import Any, NamedTuple

from subluminal.canonical import AmbiguousJSON, encode
from subluminal.canonical.encoding import Profile
from subluminal.contracts.shape import Misfit

NOT_SIGNED = "the signature is missing or wrong"
"""The one text about signatures: it must not tell a forger what to change."""
_FIELD = "signature"


class SigningKey(NamedTuple):
    """A key that bundles must be signed with."""

    key: bytes
    legacy: bool = False
    """whether Agent-SPM's own form is accepted too"""


def signature_of(value: dict[str, Any], key: bytes, *, legacy: bool = False) -> str:
    """Returns the signature of a bundle in lower-case hex. Raises AmbiguousJSON."""
    import hmac  # only commands and the compile helper sign

    unsigned = {name: item for name, item in value.items() if name != _FIELD}
    signed = _only(unsigned, frozenset(unsigned)) if legacy else unsigned
    return hmac.new(key, encode(signed, Profile.JCS), "sha256").hexdigest()


def signature_misfits(value: Any, key: SigningKey) -> list[Misfit]:
    """Returns what is wrong with the signature of plain data; nothing if it is right."""
    given = value.get(_FIELD) if isinstance(value, dict) else None
    try:
        if isinstance(given, str) and _is_right(value, given, key):
            return []
    except AmbiguousJSON:
        pass  # it has no canonical form, so nobody signed it
    hint = "sign the bundle with `sub policy sign FILE --hmac-key-file KEY`"
    return [Misfit((_FIELD,), NOT_SIGNED, hint)]


def _is_right(value: dict[str, Any], given: str, key: SigningKey) -> bool:
    import hmac

    forms = (False, True) if key.legacy else (False,)
    right = [signature_of(value, key.key, legacy=legacy) for legacy in forms]
    # All forms are compared, so that the time tells nothing.
    same = [hmac.compare_digest(given.encode(), each.encode()) for each in right]
    return True in same


def _only(value: Any, names: frozenset[str]) -> Any:
    """Drops all members with other names, at every depth."""
    if isinstance(value, dict):
        return {name: _only(item, names) for name, item in value.items() if name in names}
    return [_only(item, names) for item in value] if isinstance(value, list) else value
