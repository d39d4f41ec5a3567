"""What a project's file may not set for an entry, because it would escape the user's policy.

A repository that sets SUB_HOME chooses the policy, the record and the secrets of its own servers.
The same variables in the user's own files are the user's choice, and stay.
"""

import os
import re

from subluminal.config import env
from subluminal.errors import SubluminalError
from subluminal.importer.clients.description import Client, Scope
from subluminal.importer.document import Entry, env_of
from subluminal.importer.files import read_config
from subluminal.importer.text.json_tree import parse_json
from subluminal.importer.text.tree import Kind, Member
from subluminal.importer.wrapper import Installation, recognise

RESERVED_VARIABLES: dict[str, str] = {
    "SUB_*": "home, run, identity and policy",
    "HOME": "the default home is below it",
    env.CLAUDE_SESSION: "it names the run",
}
"""Variables that an entry in a project's file may not set, and why. A `*` stands for any ending."""

_DOTENV_LINE = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=", re.MULTILINE)


def is_reserved(name: str) -> bool:
    """Returns True if an entry in a project's file may not set this variable."""
    return env.is_among(name, RESERVED_VARIABLES)


def reserved_members(client: Client, entry: Entry, scope: Scope | None) -> list[Member]:
    """Returns the variables of an entry that its file may not set."""
    table = env_of(entry, client) if scope is Scope.PROJECT else None
    return [member for member in table.members if is_reserved(member.name)] if table else []


def overrides_of(
    client: Client, entry: Entry, scope: Scope | None, ours: Installation
) -> tuple[str, ...]:
    """Returns the variables and the options of the wrapper that the entry's file may not set."""
    if scope is not Scope.PROJECT:
        return ()
    names = [member.name for member in reserved_members(client, entry, scope)]
    found = recognise(entry.argv)
    if found and found.wrapper.home not in (None, ours.home):
        names.append(f"--home {found.wrapper.home}")
    if found and found.wrapper.policy:
        names.append(f"--policy {found.wrapper.policy}")
    return tuple(names)


def overrides_in_file(path: str) -> list[str]:
    """Returns the variables that a project's settings set for all servers, and may not.

    The file is `env` in JSON, or lines of `NAME=value`. A file that cannot be read sets nothing.
    """
    try:
        text = read_config(path).data.decode("utf-8-sig")
        names = _names_in_json(text) if path.endswith(".json") else _DOTENV_LINE.findall(text)
    except (SubluminalError, UnicodeDecodeError):
        return []
    return [name for name in dict.fromkeys(names) if is_reserved(name)]


def _names_in_json(text: str) -> list[str]:
    root = parse_json(text)
    table = root.get("env") if root.kind is Kind.TABLE else None
    return [member.name for member in table.members] if table else []


def is_in_repository(path: str) -> bool:
    """Returns True if a file is in a repository, so that others may have written it."""
    folder = os.path.dirname(os.path.abspath(path))
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return False
        folder = parent
    return True
