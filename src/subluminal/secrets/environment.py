"""Builds the environment of an upstream server (spec 001 section 7.4).

It is the client's environment, without the client's credentials and the secrets of other servers,
and with the variables of the server's own bindings.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import UNSET

from subluminal.config.env import SUB_ATTESTATION, TOKEN_VARIABLES
from subluminal.config.places import Places
from subluminal.config.settings import ServerSettings, Settings
from subluminal.contracts.bindings import SecretBinding
from subluminal.contracts.events import Injection
from subluminal.contracts.vocabulary import SecretSource
from subluminal.errors import SecretUnavailable
from subluminal.secrets.approval import (
    NOTE_PREFIX,
    Refusal,
    approved_environment,
    has_stored_bindings,
    refusal_of,
)
from subluminal.secrets.client_credentials import CLIENT_CREDENTIALS
from subluminal.secrets.resolving import Attempt, Sources, attempt_all, failure_of
from subluminal.secrets.value import SecretValue


class ChildEnvironment(NamedTuple):
    """The command and environment of a server, and what to record about them."""

    command: list[str]
    """what to start: the command as given, or the same with the approved program's path"""
    env: dict[str, str]
    injections: list[Injection]
    """the bindings, for `secret_injection` events"""
    values: list[SecretValue]
    """secrets that were injected or withheld, for the redactor"""
    withheld: list[str]
    """names of the client's variables that the server does not get"""
    refusal: Refusal | None = None
    """why the server gets no stored secret; None if it gets all of them, or has none"""


class BindingsUnresolved(SecretUnavailable):
    """A binding has no value, so the server must not be started.

    `injections` says which bindings failed, for `secret_injection` events.
    """

    def __init__(self, failure: SecretUnavailable, injections: list[Injection]) -> None:
        super().__init__(str(failure), hint=failure.hint)
        self.injections = injections


def child_environment(
    environ: Mapping[str, str],
    server_name: str,
    settings: Settings,
    places: Places,
    command: Sequence[str],
    cwd: str,
) -> ChildEnvironment:
    """Builds the environment in which a server's command is started in a directory.

    Raises BindingsUnresolved if a secret that it may have cannot be read.
    """
    server = settings.servers.get(server_name, ServerSettings())
    refusal = refusal_of(server_name, server, command, cwd)
    refused, served = _divided(server.secret_bindings, refusal)
    attempts = attempt_all(served, Sources(environ, places, settings.secrets))
    injections = _injections(server_name, attempts, refused, refusal)
    failure = failure_of(server_name, attempts)
    if failure is not None:
        raise BindingsUnresolved(failure, injections)
    private = {name for name in environ if name in CLIENT_CREDENTIALS} | _read_by_bindings(settings)
    withheld = private.intersection(environ).difference(server.pass_env)
    # Not even `pass_env` gives a server the proof of the agent that calls it.
    withheld.update(name for name in TOKEN_VARIABLES if name in environ)
    env = {name: value for name, value in environ.items() if name not in withheld}
    argv = list(command)
    if refusal is None and has_stored_bindings(server):
        argv, env = list(server.command or ()), approved_environment(server, env)
        withheld.update(name for name in environ if name not in env)
    for binding in refused:
        if env.get(binding.inject_as, "").startswith(NOTE_PREFIX):
            del env[binding.inject_as]  # the note of an import is of no use to a server
    values = []
    for attempt in attempts:
        assert attempt.value is not None, "failure_of has checked it"
        env[attempt.binding.inject_as] = attempt.value.reveal()
        values.append(attempt.value)
    # The agent has the withheld secrets in its own environment, and may put them into arguments.
    private.add(SUB_ATTESTATION.name)
    for name in sorted(private.difference(value.name for value in values)):
        if environ.get(name):
            values.append(SecretValue(name, environ[name]))
    return ChildEnvironment(argv, env, injections, values, sorted(withheld), refusal)


def _divided(
    bindings: Sequence[SecretBinding], refusal: Refusal | None
) -> tuple[list[SecretBinding], list[SecretBinding]]:
    """Returns the bindings that the command gets no value of, and the others."""
    refused = [b for b in bindings if refusal is not None and b.source is not SecretSource.ENV]
    return refused, [binding for binding in bindings if binding not in refused]


def _read_by_bindings(settings: Settings) -> set[str]:
    """Returns the variables that any binding reads.

    A server gets the value of its own binding as `inject_as`, and none of the others.
    """
    return {
        binding.secret_ref
        for server in settings.servers.values()
        for binding in server.secret_bindings
        if binding.source is SecretSource.ENV
    }


def _injections(
    server_name: str,
    attempts: Sequence[Attempt],
    refused: Sequence[SecretBinding],
    refusal: Refusal | None,
) -> list[Injection]:
    def made(binding: SecretBinding, *, success: bool, why: str = "") -> Injection:
        return Injection(
            inject_as=binding.inject_as,
            secret_ref=binding.secret_ref,
            source=binding.source,
            success=success,
            server_name=server_name,
            detail=why or UNSET,
        )

    why = refusal.sentence if refusal else ""
    return [
        *(made(each.binding, success=each.value is not None) for each in attempts),
        *(made(binding, success=False, why=why) for binding in refused),
    ]
