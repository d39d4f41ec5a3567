"""Puts a shim together: settings, secrets, the host and the loop.

`starting` loads this module after it has started the server, unless the settings must be read
before the server may start.
"""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from subluminal.config import env
from subluminal.config.places import Places, working_directory
from subluminal.supervise import WardenHandle

if TYPE_CHECKING:
    from subluminal.adapters.mcp_stdio.greeting import Greeting
    from subluminal.contracts.events import Injection
    from subluminal.core.host import Host
    from subluminal.core.policies.files import Stamp
    from subluminal.core.runs.run import Run
    from subluminal.secrets.value import SecretValue

    OpenHost = Callable[..., Host]
    """The type of `wiring.open_host`; a door may not import it, so it is handed in."""


class Prepared:
    """The settings of one server, and the secrets that they bind to it."""

    def __init__(self, server: str, where: Places, command: list[str], problem: str = "") -> None:
        from subluminal.config.settings import Settings
        from subluminal.core.live_settings import of_server
        from subluminal.core.records.redaction.redactor import Redactor, redactor_for
        from subluminal.errors import SubluminalError
        from subluminal.secrets.environment import BindingsUnresolved, child_environment

        self.server = server
        self.problem = problem
        """why the server must not start; empty if it may"""
        self.hint: str | None = None
        self.command = command
        """what to start, if it may start"""
        self.env: dict[str, str] = {}
        self.injections: list[Injection] = []
        self.redactor = Redactor()
        self.values: list[SecretValue] = []
        self.seen: Stamp | None = None
        """the stamp of the settings file, taken before it was read"""
        self.settings = Settings()
        if not problem:
            try:
                if os.path.exists(where.settings):
                    from subluminal.config.loading import load_settings  # TOML costs 20 ms
                    from subluminal.core.policies.files import stamp_of

                    self.seen = stamp_of(where.settings)
                    self.settings = load_settings(where.settings)
                child = child_environment(
                    os.environ, server, self.settings, where, command, working_directory()
                )
                self.command, self.env, self.injections = child.command, child.env, child.injections
                self.values = list(child.values)
                self.redactor = redactor_for(self.settings.redact, self.values)
                if child.refusal:
                    told = f"warning: {child.refusal.sentence}\nhint: {child.refusal.hint}\n"
                    sys.stderr.write(self.redactor.redact(told)[0])
            except BindingsUnresolved as error:
                self.problem, self.hint = str(error), error.hint
                self.injections = error.injections
            except SubluminalError as error:
                self.problem, self.hint = str(error), error.hint
        self.grace_ms = of_server(self.settings, server).grace_ms

    def record_injections(self, run: "Run") -> None:
        """Records in a run the names of the secrets that the server was given."""
        from subluminal.contracts.events import SecretInjection

        def write() -> None:
            for injection in self.injections:
                run.emit(SecretInjection, injection=injection)

        run.record(write)


def not_started(
    warden: WardenHandle,
    prepared: Prepared,
    where: Places,
    options: dict[str, str],
    open_host: "OpenHost",
) -> int:
    """Reports and records why a server was not started; returns the exit code."""
    from subluminal.contracts.events import ServerFailure
    from subluminal.core.runs.failures import Served

    sys.stderr.write(f"error: {prepared.problem}\n")
    if prepared.hint:
        sys.stderr.write(f"hint: {prepared.hint}\n")
    host = _host(prepared, where, options, open_host)
    host.tell(prepared.record_injections)
    host.open_run()
    host.health("failed", server_name=prepared.server, detail=prepared.problem)
    detail = f"server `{prepared.server}` was not started: {prepared.problem}"
    failure = ServerFailure(server_name=prepared.server, detail=detail)
    host.close(served=Served(worked=False, failure=failure))
    warden.stop(grace_ms=0)
    warden.wait_gone(1_000)
    return 1


def run(
    warden: WardenHandle,
    greeting: "Greeting",
    prepared: Prepared,
    where: Places,
    options: dict[str, str],
    open_host: "OpenHost",
) -> int:
    """Runs the shim in front of a started server; returns the exit code."""
    from subluminal.adapters.mcp_stdio.client_lines import LineSplitter, Spool
    from subluminal.adapters.mcp_stdio.shim import Shim

    host = _host(prepared, where, options, open_host)
    host.tick(0, force=True)
    host.tell(prepared.record_injections)

    def open_spool() -> Spool:
        return Spool(os.path.join(where.home, "spool"), host.settings.limits.max_spool_bytes)

    shim = Shim(
        warden,
        host,
        LineSplitter(host.settings.limits.max_inspect_bytes, open_spool),
        server_name=prepared.server,
        client_is_given=bool(os.environ.get(env.SUB_CLIENT.name)),
    )
    return shim.run(greeting)


def _host(
    prepared: Prepared, where: Places, options: dict[str, str], open_host: "OpenHost"
) -> "Host":
    _remember_use(where, prepared)
    return open_host(
        where,
        settings=prepared.settings,
        settings_seen=prepared.seen,
        redactor=prepared.redactor,
        secrets=prepared.values,
        server=prepared.server,
        policy=options.get("--policy"),
    )


def _remember_use(where: Places, prepared: Prepared) -> None:
    """Stores when each binding last worked or failed, for `sub secrets list`."""
    if not prepared.injections:
        return
    from subluminal.clock import now, rfc3339
    from subluminal.secrets.usage import record_use

    record_use(where, prepared.injections, rfc3339(now().wall_ms))
