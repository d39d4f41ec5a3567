"""Codex: `config.toml` and profiles in CODEX_HOME, `.codex/config.toml` of trusted projects.

It starts servers with a cleared environment, refuses keys that it does not know, and reads a
project's file only if the user's says `trust_level = "trusted"`.
"""

import os
import tomllib

from subluminal.importer.clients.description import (
    Client,
    ConfigFile,
    Scene,
    Shape,
    project_files,
    user_file,
)
from subluminal.importer.text.notation import TOML


def codex_home(scene: Scene) -> str:
    """Where Codex keeps its files."""
    return scene.environ.get("CODEX_HOME") or scene.in_home(".codex")


def _files(scene: Scene) -> list[ConfigFile]:
    home = codex_home(scene)
    main = os.path.join(home, "config.toml")
    return [user_file(main), *_profiles(home), *_trusted_files(scene, main)]


def _profiles(home: str) -> list[ConfigFile]:
    try:
        names = sorted(os.listdir(home))
    except OSError:
        return []
    return [user_file(os.path.join(home, name)) for name in names if name.endswith(".config.toml")]


def _trusted_files(scene: Scene, main: str) -> list[ConfigFile]:
    trusted = _trusted_folders(main)
    folders = scene.project_folders()
    if not trusted.intersection((folders[0], folders[-1])):
        return []
    return project_files(scene, os.path.join(".codex", "config.toml"))


def _trusted_folders(main: str) -> set[str]:
    try:
        with open(main, encoding="utf-8-sig") as file:
            projects = tomllib.loads(file.read()).get("projects", {})
        return {p for p, settings in projects.items() if settings.get("trust_level") == "trusted"}
    except (OSError, ValueError, RecursionError, AttributeError):
        return set()  # what is wrong with that file is told when it is read as a configuration


CODEX = Client(
    name="codex",
    title="Codex",
    files=_files,
    tables=(("mcp_servers",),),
    notation=TOML,
    shape=Shape(env_vars_key="env_vars"),
)
