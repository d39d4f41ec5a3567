"""What the importer must know about a client. Descriptions hold facts, no behaviour of their own.

The facts were observed with the real programs where that was possible (docs/guides/import.md).
"""

import os
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from subluminal.importer.text.notation import JSON, Notation


class Scope(Enum):
    """Whose file it is."""

    USER = "user"
    PROJECT = "project"


class Scene(NamedTuple):
    """Where a command runs: everything that decides which files a client reads."""

    environ: Mapping[str, str]
    cwd: str
    platform: str = sys.platform

    @property
    def user_home(self) -> str:
        return self.environ.get("HOME") or os.path.expanduser("~")

    def in_home(self, *parts: str) -> str:
        """A path below the user's home."""
        return os.path.join(self.user_home, *parts)

    def in_config(self, *parts: str) -> str:
        """A path below XDG_CONFIG_HOME."""
        root = self.environ.get("XDG_CONFIG_HOME") or self.in_home(".config")
        return os.path.join(root, *parts)

    def in_app_support(self, *parts: str) -> str:
        """A path where desktop programs of this system keep their settings."""
        if self.platform == "darwin":
            return self.in_home("Library", "Application Support", *parts)
        return self.in_config(*parts)

    def project_folders(self) -> list[str]:
        """The folder of work and those above it, up to its repository's root."""
        folders = [os.path.abspath(self.cwd)]
        while not os.path.exists(os.path.join(folders[-1], ".git")):
            parent = os.path.dirname(folders[-1])
            if parent == folders[-1]:
                return folders[:1]  # no repository: nothing above is this project's
            folders.append(parent)
        return folders


class ConfigFile(NamedTuple):
    """A file that a client reads, whether or not it is there."""

    path: str
    scope: Scope


class Shape(NamedTuple):
    """What a stdio entry looks like."""

    command_is_list: bool = False
    """`command` holds the arguments too"""
    env_key: str = "env"
    env_vars_key: str | None = None
    """where variables are named that the client passes on; it clears all others"""


class Client(NamedTuple):
    """One client."""

    name: str
    title: str
    files: Callable[[Scene], list[ConfigFile]]
    tables: tuple[tuple[str, ...], ...]
    """paths to tables of servers; `*` stands for any name"""
    notation: Notation = JSON
    shape: Shape = Shape()
    not_servers: frozenset[str] = frozenset()
    """names in such a table that mean something else"""


def user_file(path: str) -> ConfigFile:
    return ConfigFile(path, Scope.USER)


def project_files(scene: Scene, *names: str) -> list[ConfigFile]:
    """The files of these names, in the folder of work and those above it."""
    return [
        ConfigFile(os.path.join(folder, name), Scope.PROJECT)
        for folder in scene.project_folders()
        for name in names
    ]
