"""Clients that were imported: whether all of their servers still stand behind a shim."""

import os
from collections.abc import Iterator

from subluminal.config.places import Places
from subluminal.importer.clients.description import Scene
from subluminal.importer.drift import findings
from subluminal.importer.wrapper import our_installation
from subluminal.operator.doctor.checks import Check


def check(places: Places) -> Iterator[Check]:
    scene = Scene(os.environ, os.getcwd())
    found = findings(scene, places, our_installation(places, scene.user_home), imported_only=True)
    for finding in found:
        yield Check(f"client ({finding.client})", False, finding.message, finding.hint)
    if not found:
        yield Check("clients", True, "no imported client has drifted")
