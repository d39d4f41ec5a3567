"""What the importer must know about a client.

The facts were observed with the real programs where that was possible (docs/guides/import.md).
"""

import os
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from subluminal.importer.text.notation import JSON, Notation


class Scope(Enum):
    """Whether a file belongs to the user or to a project."""

    USER = "user"
    PROJECT = "project"


class Scene(NamedTuple):
    """Where a command runs, which decides which files a client reads."""

    environ: Mapping[str, str]
    cwd: str
    platform: str = sys.platform

    @property
    def user_home(self) -> str:
        return self.environ.get("HOME") or os.path.expanduser("~")

    def in_home(self, *parts: str) -> str:
        """Returns a path below the user's home."""
        return os.path.join(self.user_home, *parts)

    def in_config(self, *parts: str) -> str:
        """Returns a path below XDG_CONFIG_HOME."""
        root = self.environ.get("XDG_CONFIG_HOME") or self.in_home(".config")
        return os.path.join(root, *parts)

    def in_app_support(self, *parts: str) -> str:
        """Returns a path below the settings directory of desktop programs."""
        if self.platform == "darwin":
            return self.in_home("Library", "Application Support", *parts)
        return self.in_config(*parts)

    def project_folders(self) -> list[str]:
        """Returns the working directory and its parents, up to the root of the repository."""
        folders = [os.path.abspath(self.cwd)]
        while not os.path.exists(os.path.join(folders[-1], ".git")):
            parent = os.path.dirname(folders[-1])
            if parent == folders[-1]:
                return folders[:1]  # not in a repository: the parents are not part of a project
            folders.append(parent)
        return folders

    def folders_above(self) -> list[str]:
        """Returns the root directory, then every directory down to the working directory."""
        folders = [os.path.abspath(self.cwd)]
        while os.path.dirname(folders[-1]) != folders[-1]:
            folders.append(os.path.dirname(folders[-1]))
        return folders[::-1]


class ConfigFile(NamedTuple):
    """A file that a client reads if it exists."""

    path: str
    scope: Scope


class Shape(NamedTuple):
    """The keys and types of a stdio entry."""

    command_is_list: bool = False
    """True if `command` is a list that holds the arguments too"""
    env_key: str = "env"
    env_vars_key: str | None = None
    """key of the list of variables that the client passes on, if it clears the others"""


class HookForm(Enum):
    """How the entry of one hook looks in a client's file."""

    GROUPED = "grouped"
    """`hooks.EVENT` is a list of groups, each with a list `hooks`"""
    FLAT = "flat"
    """`hooks.EVENT` is a list of hooks, and the event's JSON does not name the event"""
    PLUGIN = "plugin"
    """the file is a program that the client loads, and all of it is ours"""


class FailClosed(Enum):
    """How a client is told to refuse a call when the hook itself fails."""

    MEMBER = "member"
    """`"onFailure": "block"` beside the command"""
    EXIT_CODE = "exit code"
    """the command ends with a text on stderr and exit code 2"""
    ALWAYS = "always"
    """the client does that by itself"""


class HookShape(NamedTuple):
    """Where a client keeps hooks, and what a hook looks like there."""

    folder: Callable[[Scene], str]
    """the client's own directory, which exists where the client is used"""
    name: str
    """the file's path below that directory"""
    events: tuple[str, ...]
    """events that the hook needs, as the client names them"""
    decides: str
    """the event before a tool call, whose answer decides it; only there a failure may refuse"""
    form: HookForm = HookForm.GROUPED
    fail_closed: FailClosed = FailClosed.EXIT_CODE
    command_key: str = "command"
    timeout: tuple[str, int] = ("timeout", 10)
    """key and value of the client's time limit"""
    shorter: Mapping[str, int] = {}
    """events with a smaller limit"""
    header: tuple[tuple[str, int], ...] = ()
    """members of a new file besides `hooks`"""
    beside_servers: bool = False
    """True if the same file holds MCP servers"""

    def file(self, scene: Scene) -> str:
        """Returns the path of the file with the hooks."""
        return os.path.join(self.folder(scene), self.name)


class Client(NamedTuple):
    """A program whose configuration can be imported."""

    name: str
    title: str
    files: Callable[[Scene], list[ConfigFile]]
    tables: tuple[tuple[str, ...], ...]
    """paths to the tables of servers; `*` stands for any name"""
    notation: Notation = JSON
    shape: Shape = Shape()
    not_servers: frozenset[str] = frozenset()
    """names in those tables that are not servers"""
    variable_files: Callable[[Scene], list[str]] = lambda _scene: []
    """files of a project that set variables for all servers"""
    reads_too: Callable[[Scene], list[str]] | None = None
    """files that the client reads, but an import leaves alone: they are outside the project"""
    hooks: HookShape | None = None
    """None if the client has no hooks, or none that we know"""


def user_file(path: str) -> ConfigFile:
    return ConfigFile(path, Scope.USER)


def project_files(scene: Scene, *names: str) -> list[ConfigFile]:
    """Returns files of these names in each of the project's directories."""
    return [
        ConfigFile(os.path.join(folder, name), Scope.PROJECT)
        for folder in scene.project_folders()
        for name in names
    ]


def shared_files(scene: Scene, *names: str) -> list[str]:
    """Returns paths of these names in the project's directories, other than the user's home."""
    home = os.path.realpath(scene.user_home)
    return [
        file.path
        for name in names
        for file in project_files(scene, name)
        if os.path.realpath(file.path) != os.path.join(home, name)
    ]
