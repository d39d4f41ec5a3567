"""The plugin of opencode that calls `sub hook`: a file of ours, with the command filled in."""

import json
import re
from importlib.resources import files

from subluminal.importer.hooks.command import HookCommand, recognise_words
from subluminal.importer.wrapper import Installation

_PLACE = '["sub", "hook", "opencode"]'
_COMMAND = re.compile(r"^const COMMAND = (\[.*\])$", re.MULTILINE)


def plugin_text(client: str, ours: Installation, found: HookCommand | None) -> str:
    """Returns the plugin; what a person added to the command of the one before is kept."""
    command = HookCommand(
        ours.program,
        client,
        home=ours.home,
        policy=found.policy if found else None,
        on_error=found.on_error if found else None,
    )
    template = files("subluminal.importer.hooks").joinpath("opencode.js").read_text("utf-8")
    return template.replace(_PLACE, json.dumps(command.words(), ensure_ascii=False))


def recognise_plugin(text: str, client: str) -> HookCommand | None:
    """Returns the command that a plugin of ours runs; None if it is not ours."""
    match = _COMMAND.search(text)
    try:
        words = json.loads(match[1]) if match else None
    except ValueError:
        return None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return None
    return recognise_words(words, client)
