"""Which command a server's stored secrets serve: the one that a person approved, and no other.

Anyone can name a server to a shim: `sub shim stdio --server github -- printenv GITHUB_TOKEN`. So a
binding from `file` or `keychain` counts only for `[servers.NAME] command`. A value from `env` is
the caller's own and needs no approval. What is started is the approved program, by its absolute
path, in an environment in which neither the client nor a project can replace it.
"""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from subluminal.config import env
from subluminal.config.settings import ServerSettings
from subluminal.contracts.vocabulary import SecretSource
from subluminal.secrets.steering_variables import STEERING_VARIABLES

NOTE_PREFIX = "sub-secret:"
"""Beginning of the text that an import leaves in a client's configuration instead of a secret."""

_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
_INTERPRETERS = (
    *("node", "nodejs", "bun", "deno", "tsx", "ts-node", "python", "pypy", "ruby", "perl", "php"),
    *("java", "lua", "Rscript", "sh", "bash", "dash", "zsh", "ksh", "fish"),
)
"""Programs that run the code that an argument names. Versions follow the name, as in `python3`."""
_ENDINGS = ("", ".js", ".cjs", ".mjs", ".json", ".node", ".ts", ".cts", ".mts", ".tsx", ".jsx")
"""What an interpreter may add to the name of a file."""
DECIDED_VARIABLES = ("HOME", "PATH")
"""Variables whose value never comes from the client, because they decide which files are run."""


class Refusal(NamedTuple):
    """Why a command gets no stored secret, and what a person can do about it."""

    sentence: str
    hint: str


def has_stored_bindings(server: ServerSettings) -> bool:
    """Returns True if a binding of the server needs an approved command."""
    return any(binding.source is not SecretSource.ENV for binding in server.secret_bindings)


def refusal_of(
    name: str, server: ServerSettings, command: Sequence[str], cwd: str
) -> Refusal | None:
    """Returns why this command gets none of the server's stored secrets; None if it gets them."""
    if not has_stored_bindings(server):
        return None
    unusable = problem_with(server.command, cwd) if server.command else ""
    if unusable:
        why = f"its approved command cannot be used: {unusable}"
        hint = "write absolute paths, in the approval and in the client's configuration"
    else:
        why = _difference(server.command, command)
        line = approve_line(name, command)
        hint = f"if you trust this command, run `{line}` in your own terminal"
    return (
        Refusal(f"server `{_printable(name)}` gets no stored secret: {why}", hint) if why else None
    )


def approve_line(name: str, command: Sequence[str] = ()) -> str:
    """Returns the command line with which a person approves a server's command, if it is known."""
    import shlex  # only for sentences

    words = shlex.join(command) or "COMMAND…"
    return _printable(f"sub secrets approve {shlex.quote(name)} -- {words}")


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)


def _difference(approved: Sequence[str] | None, command: Sequence[str]) -> str:
    if not approved:
        return "no command was approved for it"
    program, *arguments = approved
    # A path that is spelt differently could be another file, and a bare name finds what PATH says.
    # The name alone is enough here, because the approved program is started, not what PATH finds.
    if list(command[1:]) == arguments and command[0] in (program, os.path.basename(program)):
        return ""
    return "its command is not the one that was approved"


def problem_with(command: Sequence[str], cwd: str) -> str:
    """Returns why a command cannot be approved: another directory would change what it runs."""
    if not os.path.isabs(command[0]):
        return f"`{_printable(command[0])}` is not an absolute path"
    runs_paths = any(map(is_interpreter, command))
    for word in command[1:]:
        for path in (word, word.partition("=")[2]):
            if not path or os.path.isabs(path):
                continue
            place = os.path.join(cwd, path)
            if os.path.isfile(place):
                return f"`{_printable(path)}` is a file in the directory where the server starts"
            # `node .` and `python server` run a directory, and `node server` runs `server.js`.
            if runs_paths and any(os.path.exists(place + ending) for ending in _ENDINGS):
                return f"`{_printable(path)}` is code in the directory where the server starts"
    return ""


def is_interpreter(program: str) -> bool:
    """Returns True if a program runs the code that its arguments name."""
    return os.path.basename(program).rstrip("0123456789.") in _INTERPRETERS


def approved_environment(server: ServerSettings, environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of an approved command, before its secrets are added.

    It has no variable that changes what the command runs, unless a person named or set it.
    """
    passed = {
        name: value
        for name, value in environ.items()
        if name in server.pass_env or not (name in DECIDED_VARIABLES or is_steering(name))
    }
    assert server.command, "only an approved command is asked about"
    program = os.path.dirname(server.command[0])
    decided = {"PATH": f"{program}:{_SYSTEM_PATH}", "HOME": _home_of_user(environ)}
    return {**decided, **passed, **server.env}


def is_steering(name: str) -> bool:
    """Returns True if a variable changes which code a command runs, or whom it trusts."""
    return env.is_among(name, STEERING_VARIABLES)


def _home_of_user(environ: Mapping[str, str]) -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a container may run as a user without a name
        return environ.get("HOME", "/")
