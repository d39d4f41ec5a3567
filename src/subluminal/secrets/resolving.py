"""Reads the values of bindings: all of them, or one error naming the missing ones (Pack 4.1)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from subluminal.config.places import Places
from subluminal.config.settings import SecretsSettings
from subluminal.contracts.bindings import SecretBinding
from subluminal.contracts.vocabulary import SecretSource
from subluminal.errors import SecretUnavailable
from subluminal.secrets.value import MAX_SECRET_BYTES, SecretValue


class Sources(NamedTuple):
    """What values are read from."""

    environ: Mapping[str, str]
    places: Places
    settings: SecretsSettings


class Attempt(NamedTuple):
    """The result for one binding: a value, or the reason why there is none."""

    binding: SecretBinding
    value: SecretValue | None
    problem: SecretUnavailable | None


def attempt_all(bindings: Sequence[SecretBinding], sources: Sources) -> list[Attempt]:
    """Reads every binding. A variable that two bindings set is a problem of the second."""
    taken: set[str] = set()
    attempts = []
    for binding in bindings:
        attempts.append(_attempt(binding, sources, taken))
        taken.add(binding.inject_as)
    return attempts


def failure_of(server_name: str, attempts: Sequence[Attempt]) -> SecretUnavailable | None:
    """Returns one error that names every binding without a value; None if all have one."""
    failed = [(a.binding, a.problem) for a in attempts if a.problem is not None]
    if not failed:
        return None
    binding, problem = failed[0]
    others = ", ".join(f"`{other.secret_ref}`" for other, _ in failed[1:])
    message = (
        f"secret `{binding.secret_ref}` ({binding.source.value}) for `{binding.inject_as}` "
        f"of server `{server_name}`: {problem}"
    )
    return SecretUnavailable(f"{message}; also {others}" if others else message, hint=problem.hint)


def read_secret(source: SecretSource, name: str, sources: Sources) -> str | None:
    """Reads one value; None if the source has no secret of that name."""
    match source:
        case SecretSource.ENV:
            return sources.environ.get(name)
        case SecretSource.FILE:
            from subluminal.secrets.file_store import FileStore

            return FileStore(sources.places, sources.settings).read(name)
        case SecretSource.KEYCHAIN:
            from subluminal.secrets import keychain

            return keychain.read(name, sources.settings.keychain_wait_ms)


def _attempt(binding: SecretBinding, sources: Sources, taken: set[str]) -> Attempt:
    try:
        _refuse_variable(binding.inject_as, taken)
        value = read_secret(binding.source, binding.secret_ref, sources)
        if value is None:
            raise _missing(binding)
        refuse_value(value)
    except SecretUnavailable as problem:
        return Attempt(binding, None, problem)
    return Attempt(binding, SecretValue(binding.secret_ref, value, redact=binding.redact), None)


def _refuse_variable(name: str, taken: set[str]) -> None:
    if not name or "=" in name or "\0" in name:
        raise SecretUnavailable(
            f"`{name}` cannot be the name of a variable",
            hint="`inject_as` must not be empty or contain `=`",
        )
    if name in taken:
        raise SecretUnavailable(
            f"`{name}` is bound twice", hint="remove one of the two bindings from `config.toml`"
        )


def refuse_value(value: str) -> None:
    """Raises if a value is empty or cannot be a variable.

    A server that got an empty variable would fail later, and less clearly.
    """
    if not value:
        raise SecretUnavailable("its value is empty")
    if "\0" in value:
        raise SecretUnavailable("its value contains a NUL byte, which a variable cannot hold")
    if len(value.encode("utf-8", "surrogateescape")) > MAX_SECRET_BYTES:
        raise SecretUnavailable(f"its value is larger than {MAX_SECRET_BYTES} bytes")


def _missing(binding: SecretBinding) -> SecretUnavailable:
    if binding.source is SecretSource.ENV:
        return SecretUnavailable(
            f"variable `{binding.secret_ref}` is not set",
            hint="set it where you start the client; some clients clear the environment of servers",
        )
    where = "file store" if binding.source is SecretSource.FILE else "keychain"
    return SecretUnavailable(
        f"it is not in the {where}",
        hint=f"add it with `sub secrets add {binding.secret_ref} --source {binding.source.value}`",
    )
