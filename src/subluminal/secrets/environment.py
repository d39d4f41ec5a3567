"""What an upstream server finds in its environment (spec 001 section 7.4).

What the client gave, minus what is not this server's business, plus what its bindings say.
Reads nothing but what it is given; starts nothing.
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
    """What a server is started with, and what is to be told about it."""

    env: dict[str, str]
    injections: list[Injection]
    """for `secret_injection` events"""
    values: list[SecretValue]
    """for the redactor: what was injected, and what was withheld"""
    withheld: list[str]
    """names of variables that the client gave and the server does not get"""


class BindingsUnresolved(SecretUnavailable):
    """A server must not be started. `injections` say which of its bindings failed, for events."""

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
    """Builds a server's environment. `pass_env` adds to what its settings let through.

    Raises BindingsUnresolved if any of its secrets cannot be had.
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
        assert attempt.value is not None, "failure_of has seen to it"
        env[attempt.binding.inject_as] = attempt.value.reveal()
        values.append(attempt.value)
    # The agent has the others in its own environment, and may well put them into arguments.
    for name in sorted(private.difference(value.name for value in values)):
        if environ.get(name):
            values.append(SecretValue(name, environ[name]))
    return ChildEnvironment(env, injections, values, sorted(withheld))


def _read_by_bindings(settings: Settings) -> set[str]:
    """Variables that are some server's secrets. Each gets its own as `inject_as`, and only so."""
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
