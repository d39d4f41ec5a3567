"""Starts the upstream server, first of all: it boots while we load what we need ourselves.

Whatever is imported before `WardenHandle.spawn` delays every server by its time (fast-start), so
this module has only what the start needs and nothing that loads `typing`; the rest is in
`assembly`.
"""

import os
import sys

from subluminal.config.places import Places, make_private_dir, places
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
    where = _usable_home(places(os.environ, options.get("--home")))
    after_death = _last_words(where)
    stopped = _hard_stop(where, server)
    if stopped or os.path.exists(where.settings):
        # Secrets may be bound: the server waits for them.
        _load_msgspec()
        from subluminal.adapters.mcp_stdio.assembly import Prepared, not_started, run

        prepared = Prepared(server, where, stopped)
        if prepared.problem:
            return not_started(warden, prepared, where, options, open_host)
        warden.spawn(command, prepared.env, grace_ms=prepared.grace_ms, after_death=after_death)
        greeting = _greet(warden)
    else:
        # No settings, so no secrets: the server boots while we load.
        env = {k: v for k, v in os.environ.items() if k not in CLIENT_CREDENTIALS}
        warden.spawn(command, env, after_death=after_death)
        greeting = _greet(warden)
        from subluminal.adapters.mcp_stdio.assembly import Prepared, run

        prepared = Prepared(server, where)
    return run(warden, greeting, prepared, where, options, open_host)


def _greet(warden: WardenHandle) -> "Greeting":
    _load_msgspec()
    from subluminal.adapters.mcp_stdio.greeting import greet

    return greet(0, 1, warden.stdin_fd, warden.stdout_fd)


def _load_msgspec() -> None:
    """Loads msgspec without typing_extensions, which it can do without and which loads `inspect`.

    That would be a tenth of a shim's start.
    """
    if "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    import msgspec  # noqa: F401

    del sys.modules["typing_extensions"]


def _hard_stop(where: Places, server: str) -> str:
    """Says why this server must not start (`sub kill --hard`); empty if it may."""
    try:
        files = os.listdir(os.path.join(where.state, "kill"))
    except FileNotFoundError:
        return ""
    except OSError:
        return ""  # nothing passes then, so the server may well run
    if len(files) < 2:
        return ""  # the number that moves is always there
    from subluminal.config import env
    from subluminal.core.controls.kill_switch import hard_stop

    run_id = os.environ.get(env.SUB_RUN_ID.name, "")
    agent_id = os.environ.get(env.SUB_AGENT_ID.name) or "unknown"
    stop = hard_stop(where.state, run_id, agent_id, server)
    return f"{stop.sentence}; `sub revive` lifts it" if stop else ""


def _usable_home(wanted: Places) -> Places:
    """The home; where it cannot be written, its policy and settings with another place to record.

    Where nothing can be written the home itself: each call then meets `decision_on_error`
    (journal-first).
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
    """What the warden runs when we die without a word: it closes the runs that we left open."""
    return [
        sys.executable,
        "-P",  # the client's directory is no place to import from
        "-m",
        "subluminal.core.runs.last_words",
        where.home,
        str(os.getpid()),
    ]
