"""`chain.json`: the begin and end of each shim's hash chain, and the hash of every other file.

The chains alone show missing events in the middle. With their ends on record, events that were cut
off at the end of an artifact are noticed too.
"""

import msgspec

from subluminal.journal.chain import chained_form, link

CHAIN = "chain.json"
FORMAT = 1


class ChainedSource(msgspec.Struct, frozen=True):
    """The place of an event in the chain of its shim."""

    shim_id: str
    n: int = 0
    prev: str = ""


class _Line(msgspec.Struct, frozen=True):
    source: ChainedSource
    run_id: str = ""


decode_line = msgspec.json.Decoder(_Line).decode


class ShimChain(msgspec.Struct, kw_only=True):
    """The part of one shim's chain that is in an artifact."""

    shim_id: str
    first: int
    """number of its first event in the artifact"""
    events: int = 0
    prev: str
    """hash of the chain before the first event"""
    head: str
    """hash of the chain after the last event"""


class Chain(msgspec.Struct, kw_only=True):
    """The contents of `chain.json`."""

    format: int = FORMAT
    run_id: str = ""
    events: int = 0
    shims: list[ShimChain] = []
    files: dict[str, str] = {}
    """SHA-256 of every other file of the artifact, by name"""


class ChainRecord:
    """Builds the chain while events are written to an artifact."""

    def __init__(self) -> None:
        self.broken: set[str] = set()
        """shims whose events do not form a chain from the first event on"""
        self._run_id = ""
        self._events = 0
        self._shims: dict[str, ShimChain] = {}

    def add(self, line: bytes) -> None:
        """Adds one event. Events that did not come from a shim may have no chain."""
        event = decode_line(line)
        self._events += 1
        self._run_id = self._run_id or event.run_id
        source = event.source
        if not (source.n and source.prev):
            return
        shim = self._shims.get(source.shim_id)
        if shim is None:
            shim = ShimChain(
                shim_id=source.shim_id, first=source.n, prev=source.prev, head=source.prev
            )
            self._shims[source.shim_id] = shim
            # Only the home that sealed the beginning of a chain can check it (`journal.seals`).
            follows = source.n == 1
        else:
            follows = source.n == shim.first + shim.events and source.prev == shim.head
        if not follows:
            self.broken.add(source.shim_id)
        shim.events += 1
        shim.head = link(source.prev.encode(), chained_form(line)).decode()

    def chain(self, files: dict[str, str]) -> Chain:
        """Returns the contents of `chain.json`, for other files with these hashes."""
        return Chain(
            run_id=self._run_id,
            events=self._events,
            shims=list(self._shims.values()),
            files=dict(sorted(files.items())),
        )
