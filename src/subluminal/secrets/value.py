"""A secret value: it can be injected and redacted, and has no printable form (style rule 17)."""

from typing import NoReturn

MAX_SECRET_BYTES = 32_768
"""Larger is no credential but a file, and does not belong into an environment."""


class SecretValue:
    """Holds one value. Everything but `reveal` shows its name only."""

    __slots__ = ("_value", "name", "redact")

    def __init__(self, name: str, value: str, *, redact: bool = True) -> None:
        self.name = name
        self.redact = redact
        """False where a binding exempts it from redaction, as the Pack allows."""
        self._value = value

    def reveal(self) -> str:
        """Returns the value. Whoever calls this answers for where it goes."""
        return self._value

    def __repr__(self) -> str:
        return f"SecretValue({self.name!r})"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a SecretValue cannot be pickled or copied to another process")
