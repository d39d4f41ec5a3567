"""From a command line, or an entry of a client's file, to the approval that a person gives it."""

import os
import re
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence

from subluminal.errors import SubluminalError
from subluminal.importer.clients.description import Client, Scene, Scope
from subluminal.importer.clients.table import CLIENTS
from subluminal.importer.document import Entry, EntryKind, env_of, parse
from subluminal.importer.env_secrets import is_reference
from subluminal.importer.files import read_config
from subluminal.importer.importing import find_targets
from subluminal.importer.settings_file import Approval
from subluminal.importer.wrapper import recognise
from subluminal.secrets.approval import (
    DECIDED_VARIABLES,
    is_interpreter,
    is_steering,
    problem_with,
)

CERTIFICATE_VARIABLES = (
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
)
"""Variables that name files of trusted certificates."""
_BY_NAME = {
    "npx": "the directory where it starts (`node_modules`, `.npmrc`) and on the registry",
    "bunx": "the directory where it starts (`node_modules`) and on the registry",
    "uvx": "the package index",
    "pipx": "the package index",
}
_IN_DIRECTORY = ("npm", "pnpm", "yarn", "bun", "deno", "uv", "make", "go", "cargo", "poetry", "pdm")
"""Programs that read the project in the directory where they start."""
_EVALUATES = re.compile("-m|-e|-[a-z]*c|--eval")
"""Options of interpreters after which comes a module, or the text of a program."""


def approval_of(
    command: Sequence[str], environ: Mapping[str, str], cwd: str, env: Mapping[str, str] = {}
) -> Approval:
    """Returns the approval of a command as this terminal would start it.

    HOME, PATH and the trusted certificates are those of this terminal, unless `env` sets them.
    Raises SubluminalError if the command would run something else in another directory.
    """
    words = own_command(command)
    if os.sep in words[0] and not os.path.isabs(words[0]):
        raise SubluminalError(
            f"`{words[0]}` is another program in another directory",
            hint="write its absolute path, here and in the client's configuration",
        )
    # A relative directory in PATH is another one wherever the client starts the server.
    places = environ.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(place for place in places if os.path.isabs(place))
    program = shutil.which(words[0], path=path)
    if program is None:
        raise SubluminalError(
            f"cannot find the program `{words[0]}`", hint="install it first, or check PATH"
        )
    resolved = [program, *words[1:]]
    problem = problem_with(resolved, cwd)
    if problem:
        raise SubluminalError(
            f"this command runs something else in another directory: {problem}",
            hint="write its absolute path, here and in the client's configuration",
        )
    taken = {
        name: environ[name]
        for name in (*DECIDED_VARIABLES, *CERTIFICATE_VARIABLES)
        if environ.get(name)
    }
    return Approval(resolved, {**taken, "PATH": path, **env})


def left_out(approval: Approval, environ: Mapping[str, str], given: Collection[str]) -> list[str]:
    """Returns the variables of this terminal that the approved command will not get."""
    return sorted(
        name
        for name in environ
        if is_steering(name) and name not in (*approval.env, *approval.pass_env, *given)
    )


def entry_approval(client: Client, entry: Entry, environ: Mapping[str, str], cwd: str) -> Approval:
    """Returns the approval of an entry's command, with the variables that decide what it runs."""
    words = own_command(entry.argv)
    pinned: dict[str, str] = {}
    table = env_of(entry, client)
    for member in table.members if table else ():
        if member.name in DECIDED_VARIABLES or is_steering(member.name):
            pinned[member.name] = member.node.string or ""
    open_ended = [word for word in (*words, *pinned.values()) if is_reference(word)]
    if open_ended:
        raise SubluminalError(
            f"the client fills in a part of its command (`{open_ended[0]}`)",
            hint="write the command without variables, or approve it with `sub secrets approve`",
        )
    return approval_of(words, environ, cwd, pinned)


def also_decides(command: Sequence[str], scene: Scene) -> str:
    """Returns what besides the program decides which code gets the secret; empty if nothing."""
    if any(map(_is_open_to_all, (command[0], os.path.dirname(os.path.realpath(command[0]))))):
        return "other users, who can replace the program"
    root = scene.project_folders()[-1]
    inside = [word for word in command if word.startswith(f"{root}{os.sep}")]
    if os.path.exists(os.path.join(root, ".git")) and any(map(os.path.isfile, inside)):
        return "a file of this project, which its agents can change"
    name = os.path.basename(command[0])
    if name in _BY_NAME:
        return _BY_NAME[name]
    evaluates = is_interpreter(name) and any(map(_EVALUATES.match, command[1:]))
    return "the directory where it starts" if evaluates or name in _IN_DIRECTORY else ""


def _is_open_to_all(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    # In a directory such as /tmp (sticky), others cannot replace a file that is not theirs.
    return bool(mode & stat.S_IWOTH and not mode & stat.S_ISVTX)


def own_command(words: Sequence[str]) -> list[str]:
    """Returns a server's own command line, without our wrapper."""
    found = recognise(words)
    return list(words[found.length if found else 0 :])


def configured_commands(scene: Scene, server: str) -> Iterator[list[str]]:
    """Yields the commands of the servers of this name in the user's own configurations."""
    for client in CLIENTS.values():
        for target in find_targets(client, scene, scope=Scope.USER):
            try:
                document = parse(client, target.path, read_config(target.path).data)
            except SubluminalError:
                continue  # `sub import --check` reports it
            for entry in document.entries:
                if entry.server == server and entry.kind is EntryKind.STDIO:
                    yield own_command(entry.argv)
