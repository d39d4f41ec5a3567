"""The hooks that a client is configured to run, as its files have them now."""

from typing import NamedTuple

from subluminal.importer.clients.description import Client, HookForm, Scene
from subluminal.importer.document import is_blank, parse
from subluminal.importer.files import read_if_there
from subluminal.importer.hooks.command import HookCommand
from subluminal.importer.hooks.entries import HookWish
from subluminal.importer.hooks.finding import find_hooks, shape_of
from subluminal.importer.hooks.plugin import recognise_plugin
from subluminal.importer.proposal import reader_of


class ConfiguredHook(NamedTuple):
    """A hook of ours, and how the client starts it."""

    command: HookCommand
    words: list[str]


def configured_hooks(client: Client, scene: Scene, event: str) -> list[ConfiguredHook]:
    """Returns our hooks, each command once; one that names its event names `event` instead.

    Raises SubluminalError if they cannot be read.
    """
    shape = shape_of(client)
    path = shape.file(scene)
    file = read_if_there(path)
    if file is None or is_blank(file.data):
        return []
    if shape.form is HookForm.PLUGIN:
        found = recognise_plugin(file.data.decode("utf-8", "replace"), client.name)
        return [ConfiguredHook(found, found.words())] if found else []
    root = parse(reader_of(client, HookWish()), path, file.data).root
    # A command that also refuses on failure is still the same command.
    commands = [
        each.command._replace(refuses_on_failure=False) for each in find_hooks(client, root)
    ]
    named = dict.fromkeys(c._replace(event=event) if c.event else c for c in commands)
    return [ConfiguredHook(each, ["/bin/sh", "-c", each.line()]) for each in named]
