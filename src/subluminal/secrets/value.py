"""A secret value that can be injected and redacted, but not printed (unprintable-secrets)."""

from typing import NoReturn

MAX_SECRET_BYTES = 32_768
"""Largest value in bytes. Anything larger is a file, and does not belong in an environment."""


class SecretValue:
    """One value. Everything except `reveal` shows only its name."""

    __slots__ = ("_value", "name", "redact")

    def __init__(self, name: str, value: str, *, redact: bool = True) -> None:
        self.name = name
        self.redact = redact
        """False if its binding exempts it from redaction, as the Pack allows."""
        self._value = value

    def reveal(self) -> str:
        """Returns the value. The caller is responsible for where it goes."""
        return self._value

    def __repr__(self) -> str:
        return f"SecretValue({self.name!r})"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a SecretValue cannot be pickled or copied to another process")
