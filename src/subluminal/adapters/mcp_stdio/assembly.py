"""Puts a shim together: environment, server, then identity, policies, runs and the loop."""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from subluminal.config.places import Places, make_private_dir, places
from subluminal.secrets.client_credentials import CLIENT_CREDENTIALS
from subluminal.supervise import Guard

if TYPE_CHECKING:
    from subluminal.adapters.mcp_stdio.greeting import Greeting
    from subluminal.contracts.events import Injection
    from subluminal.core.enforcer import Enforcer
    from subluminal.core.policy_files import Stamp
    from subluminal.core.run import Run
    from subluminal.core.runs import Runs
    from subluminal.secrets.value import SecretValue


def start(guard: Guard, options: dict[str, str], command: list[str]) -> int:
    """Starts the server and runs the shim in front of it; returns the exit code."""
    server = options["--server"]
    where = _usable_home(places(os.environ, options.get("--home")))
    after_death = _last_words(where)
    stopped = _hard_stop(where, server)
    if stopped:
        return _not_started(guard, _Prepared(server, where, stopped), where, options)
    if os.path.exists(where.settings):
        # Secrets may be bound: the server waits for them.
        prepared = _Prepared(server, where)
        if prepared.problem:
            return _not_started(guard, prepared, where, options)
        guard.spawn(command, prepared.env, grace_ms=prepared.grace_ms, after_death=after_death)
        greeting = _greet(guard)
    else:
        # No settings, so no secrets: the server boots while we load.
        env = {k: v for k, v in os.environ.items() if k not in CLIENT_CREDENTIALS}
        guard.spawn(command, env, after_death=after_death)
        greeting = _greet(guard)
        prepared = _Prepared(server, where)
    return _run(guard, greeting, prepared, where, options)


def _greet(guard: Guard) -> "Greeting":
    _load_msgspec()
    from subluminal.adapters.mcp_stdio.greeting import greet

    return greet(0, 1, guard.stdin_fd, guard.stdout_fd)


def _load_msgspec() -> None:
    """Loads msgspec without typing_extensions, which it can do without and which loads `inspect`.

    That would be a tenth of a shim's start.
    """
    if "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    import msgspec  # noqa: F401

    del sys.modules["typing_extensions"]


class _Prepared:
    """What the settings say about one server."""

    def __init__(self, server: str, where: Places, problem: str = "") -> None:
        from subluminal.config.settings import ServerSettings, Settings
        from subluminal.core.redaction.redactor import Redactor, redactor_for
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
                from subluminal.core.policy_files import stamp_of

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


def _hard_stop(where: Places, server: str) -> str:
    """Why a person lets this server not start (`sub kill --hard`); empty if nobody does."""
    try:
        files = os.listdir(os.path.join(where.state, "kill"))
    except FileNotFoundError:
        return ""
    except OSError:
        return ""  # nothing passes then, so the server may well run
    if len(files) < 2:
        return ""  # the number that moves is always there
    from subluminal.config import env
    from subluminal.core.kill_switch import hard_stop

    run_id = os.environ.get(env.SUB_RUN_ID.name, "")
    agent_id = os.environ.get(env.SUB_AGENT_ID.name) or "unknown"
    stop = hard_stop(where.state, run_id, agent_id, server)
    return f"{stop.sentence}; `sub revive` lifts it" if stop else ""


def _usable_home(wanted: Places) -> Places:
    """The home; where it cannot be written, its policy and settings with another place to record.

    Where nothing can be written the home itself: each call then meets `decision_on_error` (D5).
    """
    try:
        make_private_dir(wanted.state)
        make_private_dir(wanted.journal)
        if os.access(wanted.state, os.W_OK) and os.access(wanted.journal, os.W_OK):
            return wanted
        problem = "it is not writable"
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
    spare = _spare_home()
    if spare is None:
        sys.stderr.write(f"sub: cannot use `{wanted.home}` ({problem}); nothing is recorded\n")
        return wanted
    sys.stderr.write(f"sub: cannot use `{wanted.home}` ({problem}); recording to `{spare}`\n")
    where = places({}, spare)
    where.settings, where.policy, where.secrets = wanted.settings, wanted.policy, wanted.secrets
    return where


def _spare_home() -> str | None:
    """A directory in the place for temporary files that is ours alone; None if there is none."""
    import stat
    import tempfile

    home = os.path.join(tempfile.gettempdir(), f"subluminal-{os.getuid()}")
    try:
        make_private_dir(home)
        status = os.lstat(home)
        # Anyone may have put it there before us.
        if (
            not stat.S_ISDIR(status.st_mode)
            or status.st_uid != os.getuid()
            or status.st_mode & 0o77
        ):
            return tempfile.mkdtemp(prefix="subluminal-")
    except OSError:
        return None
    return home


def _last_words(where: Places) -> list[str]:
    """What the guard runs when we die without a word: it closes the runs that we left open."""
    return [
        sys.executable,
        "-P",  # the client's directory is no place to import from
        "-m",
        "subluminal.core.last_words",
        where.home,
        str(os.getpid()),
    ]


def _not_started(guard: Guard, prepared: _Prepared, where: Places, options: dict[str, str]) -> int:
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
    guard.stop(grace_ms=0)
    guard.wait_gone(1_000)
    return 1


def _core(
    prepared: _Prepared, where: Places, options: dict[str, str]
) -> "tuple[Runs, Callable[[dict[str, Any]], Enforcer]]":
    from subluminal.adapters.mcp_stdio.live_settings import previewer_for
    from subluminal.config import env
    from subluminal.core.identity import identity_of
    from subluminal.core.policies import Policies
    from subluminal.core.run_names import run_id_of
    from subluminal.core.runs import Runs

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
    """The run that a call itself names: Codex' session (D4)."""
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


def _remember_use(where: Places, prepared: _Prepared) -> None:
    """For `sub secrets list`: when each binding last worked, or failed."""
    if not prepared.injections:
        return
    from subluminal.clock import now, rfc3339
    from subluminal.secrets.usage import record_use

    record_use(where, prepared.injections, rfc3339(now().wall_ms))


def _run(
    guard: Guard,
    greeting: "Greeting",
    prepared: _Prepared,
    where: Places,
    options: dict[str, str],
) -> int:
    from subluminal.adapters.mcp_stdio.calls import Calls
    from subluminal.adapters.mcp_stdio.intake import Intake
    from subluminal.adapters.mcp_stdio.live_settings import LiveSettings
    from subluminal.adapters.mcp_stdio.render import Renderer
    from subluminal.adapters.mcp_stdio.shim import Shim
    from subluminal.adapters.mcp_stdio.spool import Spool
    from subluminal.adapters.mcp_stdio.tool_lists import ToolLists
    from subluminal.config import env
    from subluminal.core.identity import parent_is
    from subluminal.core.settings_file import SettingsFile

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
        guard,
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
