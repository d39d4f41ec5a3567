"""Proves the seals of journals (`journal.seals`): this home wrote them, and nobody changed them.

Events of other homes come with `sub ingest`; only their own home can check their seals.
"""

import os

import msgspec
from msgspec import Struct

from subluminal.config.places import Places
from subluminal.config.private_files import read_bounded
from subluminal.core.controls.sealed import KeyUnusable, seal_key
from subluminal.journal.chain import seed
from subluminal.journal.seals import SEALED, beginning, has_seal_of
from subluminal.ledger.proof.findings import Report
from subluminal.timestamps import parse_rfc3339

_SEALED_LINES = tuple(b'{"type":"%b"' % kind.encode() for kind in sorted(SEALED))


class _Source(Struct, frozen=True):
    host_id: str = ""
    prev: str = ""
    seal: str = ""


class _Line(Struct, frozen=True):
    source: _Source
    ts: str


_decode = msgspec.json.Decoder(_Line).decode


class HomeSeal:
    """What this home seals with."""

    def __init__(self, places: Places, since_ms: int | None) -> None:
        """`since_ms` is when this home began to seal journals; None if it has not."""
        self.since_ms = since_ms
        self.host_id = _host_id(places)
        self.key: bytes | None = None
        if os.path.lexists(os.path.join(places.state, "seal.key")):
            try:
                self.key = seal_key(places.state)
            except KeyUnusable:
                self.key = None


class SealProof:
    """Checks the seals of one shim's chain, line by line."""

    def __init__(
        self, home: HomeSeal, run_id: str, shim_id: str, report: Report, *, is_counted: bool
    ) -> None:
        """`is_counted` says whether the state of a run of this home counts the shim's events."""
        self._home = home
        self._is_counted = is_counted
        self._run_id, self._shim_id = run_id, shim_id
        self._report = report
        self._is_sealed_here = False
        self._is_plain = False
        self._is_placed = False

    def begin(self, prev: bytes) -> None:
        """Takes the hash before the chain's first event."""
        self._is_plain = prev == seed(self._shim_id)
        key = self._home.key
        if key is not None and prev == beginning(key, self._run_id, self._shim_id):
            self._is_sealed_here = self._is_placed = True
            self._report.sealed_shims += 1

    def feed(self, line: bytes) -> str | None:
        """Takes a line whose place in the chain is proven. Returns what is wrong, or None."""
        if not self._is_placed:
            self._is_placed = True
            return self._place(line)
        if self._is_sealed_here and line.startswith(_SEALED_LINES):
            return self._check(line)
        return None

    def check_unchained(self, line: bytes) -> str | None:
        """Takes the first line of a shim that did not chain its events. Returns what is wrong."""
        try:
            host_id = _decode(line).source.host_id
        except msgspec.MsgspecError as error:
            return f"it is not an event: {error}"
        if self._is_counted or (host_id and host_id == self._home.host_id):
            return "it claims to be of this home, whose shims chain their events themselves"
        self._report.foreign_shims += 1
        return None

    def _check(self, line: bytes) -> str | None:
        source = _decode(line).source
        if not source.seal:
            return "it has no seal: this home did not write it"
        assert self._home.key is not None  # or it would not be sealed here
        if has_seal_of(self._home.key, line, source.prev.encode(), source.seal.encode()):
            return None
        return "its seal does not match: it was changed, or an event before it was"

    def _place(self, line: bytes) -> str | None:
        """Says where a chain comes from that this home did not seal."""
        event = _decode(line)
        if event.source.host_id != self._home.host_id:
            if self._is_counted:
                return "a shim of this home wrote it, and it claims to be of another home"
            self._report.foreign_shims += 1
            return None
        if not self._is_plain:
            return "it claims to be of this home, and does not begin with the seal of this home"
        since = self._home.since_ms
        if since is not None and parse_rfc3339(event.ts) > since:
            return "its journal was never sealed: an older `sub` wrote it, or somebody else did"
        self._report.unsealed_shims += 1
        return None


def _host_id(places: Places) -> str:
    try:
        return read_bounded(os.path.join(places.state, "host_id"), 256).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
