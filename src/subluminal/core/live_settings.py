"""The settings of a running host, read again when `config.toml` changes.

A change comes into force whole or not at all. A file that is wrong, unreadable or removed leaves
the settings as they were: removing the file must not change what is recorded or masked.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

from subluminal.config.settings import ServerSettings, Settings
from subluminal.core.policies.files import Stamp, stamp_of
from subluminal.core.records.previews import Previewer
from subluminal.core.records.redaction.redactor import Redactor, redactor_for
from subluminal.errors import SubluminalError
from subluminal.secrets.value import SecretValue

LOOK_EVERY_MS = 250
"""Shortest time between two checks of the file."""
_YOUNG_NS = 50_000_000
"""A file younger than this may still be being written; it is read at the next check."""


_MAX_SAME = 4
"""Most values of one name that are masked: a token that rotates has many."""


class Change(NamedTuple):
    """The result of reading the file again: new settings and their previewer, or a problem."""

    detail: str
    """a sentence for the journal"""
    settings: Settings | None = None
    previewer: Previewer | None = None


class LiveSettings:
    """Watches one settings file. `settings` is what is in force."""

    def __init__(
        self,
        path: str,
        settings: Settings,
        seen: Stamp | None = None,
        *,
        server: str | None = None,
        values: Sequence[SecretValue] = (),
    ) -> None:
        """`seen` is the stamp of the file that `settings` were read from, taken before reading.

        `server` is the server that the host serves, if any; `values` are the secrets that this
        server was given.
        """
        self.settings = settings
        self._path = path
        self._stamp = None if seen is None or _is_young(seen) else seen
        self._next_look_ms = 0
        self._problem = ""
        self._values = values
        self.server = server
        self._at_start = self._given_at_start(settings)

    def poll(self, mono_ms: int) -> Change | None:
        """Checks the file if it is time; returns what changed, or None."""
        if mono_ms < self._next_look_ms:
            return None
        self._next_look_ms = mono_ms + LOOK_EVERY_MS
        stamp = stamp_of(self._path)
        if stamp is None or stamp == self._stamp or _is_young(stamp):
            return None
        self._stamp = stamp
        return self._load()

    def also_mask(self, value: SecretValue) -> Previewer:
        """Returns a previewer that masks one more secret, as later ones will."""
        same = [each for each in self._values if each.name == value.name]
        others = [each for each in self._values if each.name != value.name]
        self._values = [*others, *same[1 - _MAX_SAME :], value]
        return previewer_for(self.settings, redactor_for(self.settings.redact, self._values))

    def _load(self) -> Change | None:
        from subluminal.config.loading import load_settings  # TOML costs 20 ms

        try:
            settings = load_settings(self._path)
            previewer = previewer_for(settings, redactor_for(settings.redact, self._values))
        except SubluminalError as error:  # the file is wrong, or a pattern in it cannot be used
            return self._refuse(str(error))
        was_wrong, self._problem = bool(self._problem), ""
        if settings == self.settings and not was_wrong:
            return None
        self.settings = settings
        detail = "the settings were read again"
        if self._given_at_start(settings) != self._at_start:
            detail += "; secret_bindings, command, env and pass_env take effect when the server "
            detail += "starts again"
        return Change(detail, settings, previewer)

    def _refuse(self, problem: str) -> Change | None:
        """Keeps the settings that are in force; reports each problem once."""
        if problem == self._problem:
            return None
        self._problem = problem
        return Change(f"the settings stay as they were: {problem}")

    def _given_at_start(self, settings: Settings) -> tuple[object, ...]:
        """Returns the settings that take effect only when the server starts."""
        if self.server is None:
            return ()
        own = of_server(settings, self.server)
        return own.secret_bindings, own.command, own.env, own.pass_env, settings.secrets


def of_server(settings: Settings, server: str) -> ServerSettings:
    """Returns what the settings say about one server."""
    return settings.servers.get(server, ServerSettings())


def previewer_for(settings: Settings, redactor: Redactor) -> Previewer:
    """Makes the previewer for these settings."""
    return Previewer(
        redactor,
        record_mode=settings.record.mode,
        max_bytes=settings.limits.max_preview_bytes,
        full_bytes=settings.limits.max_inspect_bytes,
    )


def _is_young(stamp: Stamp) -> bool:
    # A time in the future comes from another machine's clock, and says nothing about age.
    return 0 <= time.time_ns() - stamp.mtime_ns < _YOUNG_NS
