"""Starts the server before anything else, so that it starts while the shim loads its modules.

Every import before `WardenHandle.spawn` delays every server (fast-start). So this module has only
what the start needs, and does not import `typing`. The rest is in `assembly`.
"""

import os
import sys

from subluminal.config.env import without_tokens
from subluminal.config.places import Places, home_problem, places
from subluminal.config.usable_home import usable_home
from subluminal.core.runs.finding import last_words_command
from subluminal.secrets.client_credentials import CLIENT_CREDENTIALS
from subluminal.supervise import WardenHandle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subluminal.adapters.mcp_stdio.assembly import OpenHost
    from subluminal.adapters.mcp_stdio.greeting import Greeting


def start(
    warden: WardenHandle, options: dict[str, str], command: list[str], open_host: "OpenHost"
) -> int:
    """Starts the server and runs the shim in front of it; returns the exit code."""
    server = options["--server"]
    wanted = places(os.environ, options.get("--home"))
    problem = home_problem(wanted)
    if problem is not None:
        return _refuse(warden, *problem)
    where = usable_home(wanted)
    after_death = last_words_command(where, os.getpid())
    stopped = _hard_stop(where, server)
    if stopped or os.path.exists(where.settings):
        # The settings may bind secrets, so they are read before the server starts.
        _load_msgspec()
        from subluminal.adapters.mcp_stdio.assembly import Prepared, not_started, run

        prepared = Prepared(server, where, command, stopped)
        if prepared.problem:
            return not_started(warden, prepared, where, options, open_host)
        warden.spawn(
            prepared.command, prepared.env, grace_ms=prepared.grace_ms, after_death=after_death
        )
        greeting = _greet(warden)
    else:
        # Without settings there are no secrets, so the server can start at once.
        env = {k: v for k, v in without_tokens(os.environ).items() if k not in CLIENT_CREDENTIALS}
        warden.spawn(command, env, after_death=after_death)
        greeting = _greet(warden)
        from subluminal.adapters.mcp_stdio.assembly import Prepared, run

        prepared = Prepared(server, where, command)
    return run(warden, greeting, prepared, where, options, open_host)


def _refuse(warden: WardenHandle, problem: str, hint: str) -> int:
    """Says why no server is started; returns the exit code. Nothing is recorded in such a home."""
    sys.stderr.write(f"error: {problem}\nhint: {hint}\n")
    warden.stop(grace_ms=0)
    warden.wait_gone(1_000)
    return 1


def _greet(warden: WardenHandle) -> "Greeting":
    _load_msgspec()
    from subluminal.adapters.mcp_stdio.greeting import greet

    return greet(0, 1, warden.stdin_fd, warden.stdout_fd)


def _load_msgspec() -> None:
    """Loads msgspec without typing_extensions, which is optional and would load `inspect`.

    That would take a tenth of the time that a shim needs to start.
    """
    if "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    import msgspec  # noqa: F401

    del sys.modules["typing_extensions"]


def _hard_stop(where: Places, server: str) -> str:
    """Returns why this server must not start (`sub kill --hard`); empty if it may."""
    try:
        files = os.listdir(os.path.join(where.state, "kill"))
    except FileNotFoundError:
        return ""
    except OSError:
        return ""  # every call will be refused, so the server may start
    if len(files) < 2:
        return ""  # the only file is `generation`
    from subluminal.config import env
    from subluminal.core.controls.stops import hard_stop

    run_id = os.environ.get(env.SUB_RUN_ID.name, "")
    agent_id = os.environ.get(env.SUB_AGENT_ID.name) or "unknown"
    stop = hard_stop(where.state, run_id, agent_id, server)
    return f"{stop.sentence}; `sub revive` lifts it" if stop else ""
