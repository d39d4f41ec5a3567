"""Pins: the repository policy that a run saw first, on disk for all its shims (policy-layers).

A repository, and an agent that edits it, may tighten the policy of a run but not loosen it: the
first-seen policy stays in force beside the current one until a person runs `sub policy accept`.
"""

import os
from typing import NamedTuple

from subluminal.config.places import Places, encode_name
from subluminal.core.controls.sealed import create_sealed, read_sealed, seal_key, write_sealed
from subluminal.core.policies.files import Stamp, stamp_of
from subluminal.errors import SubluminalError
from subluminal.policy.snapshot import Snapshot

_PURPOSE = "policy-pin"


class SeenPolicy(NamedTuple):
    """A repository's policy at one moment."""

    path: str
    snapshot: Snapshot


class Pin:
    """The first-seen policy of one run. `look` notices other shims and `sub policy accept`."""

    def __init__(self, places: Places, run_id: str) -> None:
        self._state_dir = places.state
        self._path = os.path.join(_directory(places), encode_name(run_id))
        self._stamp: Stamp | None = None
        self.first_seen: SeenPolicy | None = None

    def look(self, current: SeenPolicy | None) -> bool:
        """Reads the pin, or sets it if the run has none; returns True if `first_seen` changed."""
        before = self.first_seen
        stamp = stamp_of(self._path)
        if stamp is None and current is not None and self.first_seen is None:
            self.first_seen = current
            self._write(current)
            stamp = stamp_of(self._path)
        if stamp is not None and stamp != self._stamp:
            self._stamp = stamp
            # A pin with a broken seal was not written by this home; what this shim saw counts.
            self.first_seen = _read(self._path, self._state_dir) or self.first_seen
        return before is not self.first_seen

    def _write(self, current: SeenPolicy) -> None:
        try:
            create_sealed(self._path, seal_key(self._state_dir), _PURPOSE, _encode(current))
        except OSError:
            return  # the disk is full; this shim still remembers it


def accept(places: Places, current: SeenPolicy) -> list[str]:
    """Replaces the pins of runs that first saw another version; returns the names of these pins.

    The shims of these runs notice within a second.
    """
    try:
        names = sorted(os.listdir(_directory(places)))
    except FileNotFoundError:
        return []
    accepted = []
    for name in names:
        path = os.path.join(_directory(places), name)
        seen = _read(path, places.state)
        if seen is None or os.path.realpath(seen.path) != os.path.realpath(current.path):
            continue
        if seen.snapshot.policy_hash != current.snapshot.policy_hash:
            write_sealed(path, seal_key(places.state), _PURPOSE, _encode(current))
            accepted.append(name)
    return accepted


def _directory(places: Places) -> str:
    return os.path.join(places.state, "pins")


def _encode(seen: SeenPolicy) -> bytes:
    return os.fsencode(seen.path) + b"\0" + seen.snapshot.to_json()


def _read(path: str, state_dir: str) -> SeenPolicy | None:
    try:
        data = read_sealed(path, seal_key(state_dir), _PURPOSE)
        if data is None:
            return None
        seen_at, _, text = data.partition(b"\0")
        return SeenPolicy(os.fsdecode(seen_at), Snapshot.from_json(text))
    except (OSError, SubluminalError):
        return None
