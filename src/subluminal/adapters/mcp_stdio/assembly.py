"""Puts a shim together beside its server: settings, identity, policies, runs and the loop."""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from subluminal.config.places import Places
from subluminal.supervise import WardenHandle

if TYPE_CHECKING:
    from subluminal.adapters.mcp_stdio.greeting import Greeting
    from subluminal.contracts.events import Injection
    from subluminal.core.enforcer import Enforcer
    from subluminal.core.host import Runs
    from subluminal.core.policies.files import Stamp
    from subluminal.core.runs.run import Run
    from subluminal.secrets.value import SecretValue


class Prepared:
    """What the settings say about one server."""

    def __init__(self, server: str, where: Places, problem: str = "") -> None:
        from subluminal.config.settings import ServerSettings, Settings
        from subluminal.core.records.redaction.redactor import Redactor, redactor_for
        from subluminal.errors import SubluminalError
        from subluminal.secrets.environment import BindingsUnresolved, child_environment

        self.server = server
        self.problem = problem
        self.hint: str | None = None
        self.env: dict[str, str] = {}
        self.injections: list[Injection] = []
        self.redactor = Redactor()
        self.values: list[SecretValue] = []
        self.seen: Stamp | None = None
        """of the file that the settings were read from, taken before"""
        self.settings: Settings = Settings()
        self._own = ServerSettings()
        if problem:
            return
        try:
            if os.path.exists(where.settings):
                from subluminal.config.loading import load_settings  # TOML costs 20 ms
                from subluminal.core.policies.files import stamp_of

                self.seen = stamp_of(where.settings)
                self.settings = load_settings(where.settings)
            child = child_environment(os.environ, server, self.settings, where)
            self.env, self.injections = child.env, child.injections
            self.values = list(child.values)
            self.redactor = redactor_for(self.settings.redact, self.values)
        except BindingsUnresolved as error:
            self.problem, self.hint = str(error), error.hint
            self.injections = error.injections
        except SubluminalError as error:
            self.problem, self.hint = str(error), error.hint
        self._own = self.settings.servers.get(server, ServerSettings())

    @property
    def grace_ms(self) -> int:
        return self._own.grace_ms

    @property
    def call_timeout_ms(self) -> int | None:
        return self._own.call_timeout_ms


def not_started(
    warden: WardenHandle, prepared: Prepared, where: Places, options: dict[str, str]
) -> int:
    """A server whose settings or secrets are wrong is not started; the run says why."""
    from subluminal.contracts.vocabulary import RunStatus

    sys.stderr.write(f"error: {prepared.problem}\n")
    if prepared.hint:
        sys.stderr.write(f"hint: {prepared.hint}\n")
    _remember_use(where, prepared)
    runs, enforcer_of = _core(prepared, where, options)
    runs.tell(lambda run: _record_injections(run, prepared.injections))
    enforcer_of({})
    runs.health("failed", server_name=prepared.server, detail=prepared.problem)
    runs.leave_all(RunStatus.FAILED)
    runs.close()
    warden.stop(grace_ms=0)
    warden.wait_gone(1_000)
    return 1


def _core(
    prepared: Prepared, where: Places, options: dict[str, str]
) -> "tuple[Runs, Callable[[dict[str, Any]], Enforcer]]":
    from subluminal.adapters.mcp_stdio.live_settings import previewer_for
    from subluminal.config import env
    from subluminal.core.host import Runs
    from subluminal.core.policies.watching import Policies
    from subluminal.core.runs.names import run_id_of
    from subluminal.trust.identity.agent import identity_of

    cwd = _working_directory()
    identity = identity_of(os.environ, cwd)
    explicit = options.get("--policy") or os.environ.get(env.SUB_POLICY.name)
    policies = Policies(where, identity, cwd, explicit)
    runs = Runs(
        where,
        identity,
        policies,
        previewer_for(prepared.settings, prepared.redactor),
        max_journal_bytes=prepared.settings.limits.max_journal_bytes,
    )
    default = run_id_of(os.environ, where)
    is_given = bool(os.environ.get(env.SUB_RUN_ID.name))

    def enforcer_of(meta: dict[str, Any]) -> "Enforcer":
        named = _session(meta) if meta and not is_given else None
        return runs.enforcer(named or default)

    return runs, enforcer_of


def _session(meta: dict[str, Any]) -> str | None:
    """The run that a call itself names: Codex' session (shared-runs)."""
    turn = meta.get("x-codex-turn-metadata")
    session = turn.get("session_id") if isinstance(turn, dict) else None
    return session if isinstance(session, str) and session else None


def _working_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"  # removed under the client's feet; the server may not mind


def _record_injections(run: "Run", injections: "list[Injection]") -> None:
    from subluminal.contracts.events import SecretInjection

    def write() -> None:
        for injection in injections:
            run.emit(SecretInjection, injection=injection)

    run.record(write)


def _remember_use(where: Places, prepared: Prepared) -> None:
    """For `sub secrets list`: when each binding last worked, or failed."""
    if not prepared.injections:
        return
    from subluminal.clock import now, rfc3339
    from subluminal.secrets.usage import record_use

    record_use(where, prepared.injections, rfc3339(now().wall_ms))


def run(
    warden: WardenHandle,
    greeting: "Greeting",
    prepared: Prepared,
    where: Places,
    options: dict[str, str],
) -> int:
    from subluminal.adapters.mcp.calls import Calls
    from subluminal.adapters.mcp.render import Renderer
    from subluminal.adapters.mcp.tool_lists import ToolLists
    from subluminal.adapters.mcp_stdio.intake import Intake
    from subluminal.adapters.mcp_stdio.live_settings import LiveSettings
    from subluminal.adapters.mcp_stdio.shim import Shim
    from subluminal.adapters.mcp_stdio.spool import Spool
    from subluminal.config import env
    from subluminal.core.settings_file import SettingsFile
    from subluminal.trust.identity.agent import parent_is

    _remember_use(where, prepared)
    runs, enforcer_of = _core(prepared, where, options)
    runs.poll_policies(0, force=True)
    runs.tell(lambda run: _record_injections(run, prepared.injections))

    def open_run(required: bool) -> None:
        # Codex names the run in its calls; anyone else's is known already.
        if required or os.environ.get(env.SUB_RUN_ID.name) or not parent_is("codex"):
            enforcer_of({})

    file = SettingsFile(where.settings, prepared.settings, prepared.seen)
    live = LiveSettings(file, prepared.server, prepared.values, runs)
    settings = prepared.settings
    shim = Shim(
        warden,
        runs,
        lambda answer: Calls(
            prepared.server,
            enforcer_of,
            Renderer(settings.shim.codes),
            answer,
            call_timeout_ms=prepared.call_timeout_ms,
        ),
        ToolLists(prepared.server, runs),
        Intake(
            settings.limits.max_inspect_bytes,
            lambda: Spool(os.path.join(where.home, "spool"), live.settings.limits.max_spool_bytes),
        ),
        server_name=prepared.server,
        open_run=open_run,
        settings=live,
    )
    return shim.run(greeting)
