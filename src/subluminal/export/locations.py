"""Where in a file each rule of a policy stands, as far as that can still be told.

The file may have changed since: only one that compiles to the same hash is believed.
"""

import os
from typing import NamedTuple
from urllib.parse import quote

from subluminal.errors import SubluminalError
from subluminal.export.files import open_plain
from subluminal.export.policies import UsedPolicy

MAX_BYTES = 4_194_304
WHERE_ONE_BELONGS = ".subluminal/policy.yaml"


class Located(NamedTuple):
    """A policy's file for a report, and the line of each rule."""

    uri: str
    in_repository: bool
    """whether `uri` is relative to the repository's root"""
    lines: dict[str, int]

    def line(self, rule_id: str | None) -> int:
        return self.lines.get(rule_id or "", 1)


NOWHERE = Located(WHERE_ONE_BELONGS, True, {})
"""For calls that no policy applied to: where one would be looked for."""


def locate(policy: UsedPolicy, root: str | None) -> Located:
    """Finds a policy's file; `root` is the repository's."""
    if not policy.files:
        return NOWHERE
    files = sorted(policy.files)
    read = ((file, _lines(file, policy.policy_hash)) for file in files)
    file, lines = next(((file, lines) for file, lines in read if lines), (files[0], {}))
    path = os.path.abspath(file)
    if root and os.path.isabs(root) and os.path.commonpath([root, path]) == root:
        return Located(quote(os.path.relpath(path, root)), True, lines)
    return Located(f"file://{quote(path)}", False, lines)


def _lines(file: str, policy_hash: str) -> dict[str, int]:
    # Loaded only here: a parser for YAML takes longer than the rest of an artifact.
    from subluminal.policy.compiling import compile_bundle
    from subluminal.policy.loading import parse_bundle

    try:
        with open_plain(file) as opened:
            loaded = parse_bundle(opened.read(MAX_BYTES), file)
    except (OSError, ValueError, SubluminalError):  # the name is what an event says
        return {}
    if compile_bundle(loaded.bundle).policy_hash != policy_hash:
        return {}
    return {
        rule.rule_id: loaded.node.find(("rules", index)).line or 1
        for index, rule in enumerate(loaded.bundle.rules)
    }
