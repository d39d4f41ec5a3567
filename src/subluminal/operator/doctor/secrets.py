"""Checks that the stored secrets of each server serve a command that a person approved."""

import os
from collections.abc import Iterator

from subluminal.config.loading import load_settings
from subluminal.config.places import Places, working_directory
from subluminal.errors import SubluminalError
from subluminal.importer.clients.description import Scene
from subluminal.operator.doctor.checks import Check
from subluminal.operator.secrets_approval import unapproved_servers


def check_approvals(places: Places) -> Iterator[Check]:
    """Yields a failed check for every server whose stored secrets no command would get."""
    try:
        settings = load_settings(places.settings)
    except SubluminalError:
        return  # the check of the settings says why
    found = list(unapproved_servers(settings, Scene(os.environ, working_directory())))
    for each in found:
        yield Check("secrets", False, f"server `{each.server}`: {each.problem}", each.hint)
    if not found:
        yield Check("secrets", True, "stored secrets serve only approved commands")
