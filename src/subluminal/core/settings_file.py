"""`config.toml` while shims run: a change comes into force whole, or stays out (fast-start).

A file that is wrong or unreadable leaves in force what was, and so does one that is gone: taking a
file away must not change what is recorded or masked.
"""

import time
from typing import NamedTuple

from subluminal.config.settings import Settings
from subluminal.core.policies.files import Stamp, stamp_of
from subluminal.errors import SubluminalError

LOOK_EVERY_MS = 250
"""How often the file's times are looked at, at most."""
_YOUNG_NS = 50_000_000
"""A file this young may still be written: the next look takes it."""


class Change(NamedTuple):
    """New settings, or why they stay out."""

    settings: Settings | None
    problem: str = ""


class SettingsFile:
    """Watches one file. `settings` is what is in force."""

    def __init__(self, path: str, settings: Settings, seen: Stamp | None) -> None:
        """`seen` is the stamp of the file that `settings` were read from; None if there was none.

        It must have been taken before the file was read.
        """
        self._path = path
        self._stamp = None if seen is None or _is_young(seen) else seen
        self._next_look_ms = 0
        self.settings = settings
        self.problem = ""
        """what is wrong with the newest, if something is"""

    def poll(self, mono_ms: int) -> Change | None:
        """Looks at the file if it is time; what changed, or None."""
        if mono_ms < self._next_look_ms:
            return None
        self._next_look_ms = mono_ms + LOOK_EVERY_MS
        stamp = stamp_of(self._path)
        if stamp is None or stamp == self._stamp or _is_young(stamp):
            return None
        self._stamp = stamp
        return self._load()

    def _load(self) -> Change | None:
        from subluminal.config.loading import load_settings  # TOML costs 20 ms

        try:
            settings = load_settings(self._path)
        except SubluminalError as error:
            return self.refuse(str(error))
        was_wrong, self.problem = bool(self.problem), ""
        if settings == self.settings and not was_wrong:
            return None
        self.settings = settings
        return Change(settings)

    def refuse(self, problem: str) -> Change | None:
        """Keeps what was in force; told once for each problem."""
        if problem == self.problem:
            return None
        self.problem = problem
        return Change(None, problem)


def _is_young(stamp: Stamp) -> bool:
    # A time in the future is someone else's clock, and tells nothing.
    return 0 <= time.time_ns() - stamp.mtime_ns < _YOUNG_NS
