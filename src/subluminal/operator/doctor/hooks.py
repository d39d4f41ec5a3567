"""Checks that each client's hooks are there, switched on, trusted, and really run.

A hook that does not run looks like an agent that calls no tools.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

from subluminal.config import env
from subluminal.config.places import Places, working_directory
from subluminal.errors import SubluminalError
from subluminal.importer.backups import Manifest
from subluminal.importer.clients.description import Client, Scene
from subluminal.importer.clients.table import CLIENTS
from subluminal.importer.drift import hook_findings, imported_files
from subluminal.importer.hooks.configured import ConfiguredHook, configured_hooks
from subluminal.importer.hooks.finding import shape_of
from subluminal.importer.wrapper import our_installation
from subluminal.operator.codex_hooks import our_codex_hooks
from subluminal.operator.doctor.checks import Check
from subluminal.operator.doctor.hook_runs import runs_without_hooks
from subluminal.operator.doctor.hook_switches import switched_off
from subluminal.operator.trials import run_for_a_moment

_EVENT = {"session_id": "sub-doctor", "hook_event_name": "SubDoctor"}
"""An event that no client has. `sub hook` answers it with its version and home, and records
nothing."""
_TIMEOUT_S = 15.0

Problem = tuple[str, str | None]
"""What is wrong, and what to do about it."""


def check_hooks(places: Places) -> Iterator[Check]:
    """Checks the hooks of every client that has some, or had some, or could have some."""
    scene = Scene(os.environ, working_directory())
    imported = imported_files(places)
    for client in CLIENTS.values():
        if client.hooks is not None:
            known = [manifest for manifest in imported if manifest.client == client.name]
            yield from _of_client(client, scene, places, known)


def _of_client(
    client: Client, scene: Scene, places: Places, known: list[Manifest]
) -> Iterator[Check]:
    name = f"hooks:{client.name}"
    for finding in hook_findings(client, scene, our_installation(places, scene.user_home), known):
        yield Check(name, False, finding.message, finding.hint)
        return
    try:
        hooks = configured_hooks(client, scene, _EVENT["hook_event_name"])
    except SubluminalError:
        return  # no import has been there, so these are not our hooks
    if not hooks:
        if any(manifest.servers for manifest in known):
            hint = f"add them with `sub import {client.name} --hooks`"
            yield Check(name, True, "no hooks: only calls of MCP servers are seen", hint)
        return
    problem = _problem(client, scene, places, hooks)
    if problem is not None:
        yield Check(name, False, *problem)
    else:
        path = shape_of(client).file(scene)
        yield Check(name, True, f"{client.title} runs our hook, and it answers: `{path}`")


def _problem(
    client: Client, scene: Scene, places: Places, hooks: list[ConfiguredHook]
) -> Problem | None:
    """Returns the first thing that keeps hooks from being run."""
    return (
        _switch(client, scene)
        or _trust(client, scene)
        or next((found for hook in hooks if (found := _answer(hook, places))), None)
        or _runs(client, scene, places)
    )


def _switch(client: Client, scene: Scene) -> Problem | None:
    found = switched_off(client, scene)
    if found is None:
        return None
    return f"`{found.path}` switches hooks off: `{found.setting}`", "remove the setting"


def _trust(client: Client, scene: Scene) -> Problem | None:
    if client.name != "codex":
        return None
    try:
        hooks = our_codex_hooks(scene)
    except SubluminalError as error:
        return f"Codex cannot be asked whether it trusts the hooks: {error}", error.hint
    if not hooks:
        hint = "check `[features] hooks` in Codex' configuration"
        return "Codex does not list the hooks: they are switched off", hint
    if not all(hook.is_enabled for hook in hooks):
        return "hooks are switched off in Codex", "switch them on in Codex with `/hooks`"
    if not all(hook.is_trusted for hook in hooks):
        hint = "run `sub import codex --trust`, or trust them in Codex with `/hooks`"
        return "Codex does not trust the hooks, so it does not run them", hint
    return None


def _answer(hook: ConfiguredHook, places: Places) -> Problem | None:
    """Starts a hook as the client does, with an event that means nothing."""
    kept = {
        name: value
        for name, value in os.environ.items()
        # The client may have been started elsewhere: the command itself must name the home.
        if not name.startswith("SUB_") or name == env.SUB_PLAIN_POSIX.name
    }
    again = f"run `sub import {hook.command.client}` again"
    stdin = json.dumps(_EVENT).encode()
    try:
        ran = run_for_a_moment(hook.words, stdin, _TIMEOUT_S, environ=kept, cwd=working_directory())
    except OSError as error:
        return f"the hook cannot be started: {(error.strerror or str(error)).lower()}", again
    told = f"the hook `{hook.command.program}`"
    if ran.code is None:
        return f"{told} did not answer within {_TIMEOUT_S:.0f} s", None
    answer = _decoded(ran.stdout)
    if ran.code != 0 or answer is None:
        return f"{told} does not answer as it should (exit code {ran.code})", again
    home = str(answer.get("home"))
    if os.path.realpath(home) != os.path.realpath(places.home):
        return f"{told} records in another home, `{home}`", again
    return None


def _decoded(stdout: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(stdout)["subluminal"]
    except (ValueError, KeyError, TypeError):
        return None
    return answer if isinstance(answer, dict) and "version" in answer else None


def _runs(client: Client, scene: Scene, places: Places) -> Problem | None:
    runs = runs_without_hooks(client, scene, places)
    if not runs:
        return None
    told = f"{len(runs)} recent run{'s' if len(runs) > 1 else ''}"
    return (
        f"{client.title} did not run its hooks in {told}: {', '.join(runs[:3])}",
        f"restart {client.title}; if it happens again, check whether it was started without hooks",
    )
