"""Builds the environment of an upstream server (spec 001 section 7.4).

It is the client's environment, without the client's credentials and the secrets of other servers,
and with the variables of the server's own bindings.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from subluminal.config.places import Places
from subluminal.config.settings import ServerSettings, Settings
from subluminal.contracts.events import Injection
from subluminal.contracts.vocabulary import SecretSource
from subluminal.errors import SecretUnavailable
from subluminal.secrets.client_credentials import CLIENT_CREDENTIALS
from subluminal.secrets.resolving import Attempt, Sources, attempt_all, failure_of
from subluminal.secrets.value import SecretValue


class ChildEnvironment(NamedTuple):
    """The environment of a server, and what to record about it."""

    env: dict[str, str]
    injections: list[Injection]
    """the bindings, for `secret_injection` events"""
    values: list[SecretValue]
    """secrets that were injected or withheld, for the redactor"""
    withheld: list[str]
    """names of the client's variables that the server does not get"""


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
    *,
    pass_env: Collection[str] = (),
) -> ChildEnvironment:
    """Builds a server's environment. `pass_env` adds to the `pass_env` of its settings.

    Raises BindingsUnresolved if any of its secrets cannot be read.
    """
    server = settings.servers.get(server_name, ServerSettings())
    attempts = attempt_all(server.secret_bindings, Sources(environ, places, settings.secrets))
    injections = _injections(server_name, attempts)
    failure = failure_of(server_name, attempts)
    if failure is not None:
        raise BindingsUnresolved(failure, injections)
    private = {name for name in environ if name in CLIENT_CREDENTIALS} | _read_by_bindings(settings)
    withheld = private.intersection(environ).difference(server.pass_env, pass_env)
    env = {name: value for name, value in environ.items() if name not in withheld}
    values = []
    for attempt in attempts:
        assert attempt.value is not None, "failure_of has checked it"
        env[attempt.binding.inject_as] = attempt.value.reveal()
        values.append(attempt.value)
    # The agent has the withheld secrets in its own environment, and may put them into arguments.
    for name in sorted(private.difference(value.name for value in values)):
        if environ.get(name):
            values.append(SecretValue(name, environ[name]))
    return ChildEnvironment(env, injections, values, sorted(withheld))


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


def _injections(server_name: str, attempts: Sequence[Attempt]) -> list[Injection]:
    return [
        Injection(
            inject_as=attempt.binding.inject_as,
            secret_ref=attempt.binding.secret_ref,
            source=attempt.binding.source,
            success=attempt.value is not None,
            server_name=server_name,
        )
        for attempt in attempts
    ]
