"""Handovers on disk: a call that one door decided, and that a later door meets again (ADR 0012).

An MCP call passes a hook of the client first, and the shim of its server after that. The first door
decides it, records it, and leaves an *offer*. The later door *takes* it: it decides and counts
nothing, and records the end, because it is nearer to the server.

    offers/KEY.TIME.SHIM_ID.CALL_ID   a decided call that may be taken; SHIM_ID offers it
    taken/SHIM_ID.CALL_ID             a call that was taken; SHIM_ID will record its end
    generation                        a number that every offer moves (`core.waiting_offers`)

INVARIANT: at every moment one process is responsible for the end of a call. An offer is moved or
removed by one system call: whoever succeeds is responsible from then on. A taken file is removed
only after the end is in the journal of its shim. So nobody ends a call twice, and whoever looks for
the end of a call finds the offer, else the taken file, else the end (`core.runs.handed_calls`).

The files are sealed, written whole, and read with a bound. A file that cannot be used is passed
over: then the call is decided anew.
"""

import os
import time
from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

import msgspec
from msgspec import Struct

from subluminal.canonical import digest
from subluminal.config.places import Places, make_private_dir
from subluminal.contracts.call import ToolCall
from subluminal.contracts.events import CallRef
from subluminal.core.controls.sealed import create_sealed, read_sealed, seal_key
from subluminal.core.waiting_offers import tell_of_offer
from subluminal.system.processes import boot_id

WITH_ID_MS = 600_000
"""How long an offer is good if the client gives its calls ids. A person may be asked meanwhile."""
WITHOUT_ID_MS = 30_000
"""The same without ids: the next identical call of the run within this time is taken for it."""

_PURPOSE = "handover"
_MAX_BYTES = 65_536
"""Largest handover. A call whose names need more is not offered."""
_MAX_SPENT = 10_000
"""Most calls that a process remembers to have taken."""
_MAX_TIDIED = 1_000
"""Most files that one round of tidying removes."""


class Handover(Struct, frozen=True):
    """What a later door must know of a decided call."""

    run_id: str
    call: CallRef
    begun_by: str
    """shim id of the door that recorded start and decision"""
    transport: str
    """how the call came to the door that offers it"""
    started_ms: int
    """wall clock at the start of the call"""
    started_ns: int
    """monotonic clock at the start of the call"""
    boot: str
    """the boot in which `started_ns` has a meaning"""
    lives_ms: int
    """how long after its start the call may be taken"""
    grants: list[tuple[str, str]] = []
    """(layer, rule_id) of the rules that a grant let the call pass"""
    asked: str = ""
    """what the client asks its person about the call; empty if it asks nothing"""
    key: str = ""
    """the key that the call is offered under; a file that was renamed or copied is not taken"""

    def began_ns(self) -> int | None:
        """Returns the monotonic time at which the call began; None if it was in another boot."""
        return self.started_ns if self.boot == boot_id() else None

    def is_good(self) -> bool:
        """Returns True if the call may still be taken."""
        began_ns = self.began_ns()
        if began_ns is None:
            age_ms = time.time_ns() // 1_000_000 - self.started_ms
        else:
            age_ms = (time.monotonic_ns() - began_ns) // 1_000_000
        return 0 <= age_ms <= self.lives_ms


_decode = msgspec.json.Decoder(Handover).decode


class Found(NamedTuple):
    """A handover, and the file that it is in."""

    path: str
    handover: Handover

    @property
    def offered_by(self) -> str:
        """The shim id of the door that offers the call."""
        parts = _parts(os.path.basename(self.path))
        return parts.shim_id if parts else ""


class _Name(NamedTuple):
    """The parts of an offer's name."""

    key: str
    time: str
    shim_id: str
    call_id: str


def key_of(call: ToolCall, run_id: str, *, by_run: bool = False) -> tuple[str, int]:
    """Returns the key under which a call is offered and looked for, and how long it is good.

    `by_run` leaves out the client's id of the call.
    """
    client_call_id = None if by_run else call.context.get("client_call_id")
    which = ["run", run_id] if client_call_id is None else ["call", client_call_id]
    key = digest([*which, call.server_name, call.tool_name, call.args_hash])
    return key, WITHOUT_ID_MS if client_call_id is None else WITH_ID_MS


class Handovers:
    """The handovers of one home."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self.offers = os.path.join(places.handovers, "offers")
        self._taken = os.path.join(places.handovers, "taken")
        self._spent: dict[str, None] = {}
        """ids of calls that were taken here, newest last: a copy of their offer is worth nothing"""

    def exist(self) -> bool:
        """Returns True if any door of this home ever offered a call."""
        return os.path.exists(self.offers)

    def offer(self, key: str, shim_id: str, handover: Handover) -> str:
        """Offers a call to later doors; returns the path of the offer, or empty if it failed."""
        data = msgspec.json.encode(handover)
        if len(data) > _MAX_BYTES // 2:
            return ""
        # Ordered by time: of several identical calls, the oldest is taken first.
        name = ".".join((key, f"{time.time_ns():020d}", shim_id, handover.call.call_id))
        path = os.path.join(self.offers, name)
        try:
            make_private_dir(self._taken)
            if not create_sealed(path, seal_key(self._places.state), _PURPOSE, data):
                return ""
        except OSError:
            return ""  # a full disk: the later door decides the call anew
        try:
            tell_of_offer(self._places)
        except OSError:
            return path  # the same
        return path

    def names(self) -> list[str]:
        """Returns the names of all offers."""
        return _names(self.offers)

    def offered(self, key: str, names: Iterable[str]) -> Iterator[Found]:
        """Yields those of the named offers that have a key, oldest first."""
        for name in sorted(name for name in names if name.startswith(key)):
            yield from self._read(os.path.join(self.offers, name))

    def take(self, path: str, shim_id: str, call_id: str) -> str:
        """Takes an offer; returns the path of the taken file, or empty if another was first."""
        taken = os.path.join(self._taken, f"{shim_id}.{call_id}")
        if call_id in self._spent:
            return ""
        try:
            os.rename(path, taken)
        except OSError:
            return ""
        self._spent[call_id] = None
        if len(self._spent) > _MAX_SPENT:
            self._spent.pop(next(iter(self._spent)), None)
        return taken

    def revoke(self, shim_id: str, call_id: str) -> bool:
        """Removes the offer that a shim made of a call; False if there is none to remove."""
        return any(
            remove(os.path.join(self.offers, name))
            for name in _names(self.offers)
            if (parts := _parts(name)) and parts[2:] == (shim_id, call_id)
        )

    def taken_by(self, shim_id: str) -> list[Found]:
        """Returns the calls that a shim took over, as far as it has not removed the files."""
        own = [name for name in _names(self._taken) if name.partition(".")[0] == shim_id]
        return [each for name in own for each in self._read(os.path.join(self._taken, name))]

    def taken_from(self, shim_id: str) -> set[str]:
        """Returns the ids of all calls that other shims have taken over."""
        parts = [name.partition(".") for name in _names(self._taken)]
        return {call_id for taker, _, call_id in parts if taker != shim_id}

    def tidy(self, attending: Set[str]) -> None:
        """Removes old files of shims that are gone. `attending` are the shims that are not."""
        left = [
            os.path.join(self.offers, name)
            for name in _names(self.offers)
            if (parts := _parts(name)) is None or parts.shim_id not in attending
        ]
        left += [
            os.path.join(self._taken, name)
            for name in _names(self._taken)
            if name.partition(".")[0] not in attending
        ]
        old_s = time.time() - WITH_ID_MS / 1000
        for path in [path for path in left if _is_older(path, old_s)][:_MAX_TIDIED]:
            remove(path)

    def _read(self, path: str) -> Iterator[Found]:
        """Yields the handover in a file; nothing if the file is gone, damaged or not ours."""
        try:
            data = read_sealed(path, seal_key(self._places.state), _PURPOSE, _MAX_BYTES)
            if data is not None:
                yield Found(path, _decode(data))
        except (OSError, msgspec.MsgspecError):
            return


def remove(path: str) -> bool:
    """Removes a file; returns False if there is none."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # it stays, and nobody else can move it either
    return True


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _parts(name: str) -> _Name | None:
    parts = name.split(".", 3)
    return _Name(*parts) if len(parts) == 4 else None


def _is_older(path: str, than_s: float) -> bool:
    try:
        return os.lstat(path).st_mtime < than_s
    except OSError:
        return False
