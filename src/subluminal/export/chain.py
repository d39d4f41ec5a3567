"""`chain.json`: where each shim's hash chain begins and ends, and the hash of every other file.

With it, events that were cut off at the end of an artifact are missed, not only those inside.
"""

import msgspec

from subluminal.journal.chain import chained_form, link, seed

CHAIN = "chain.json"
FORMAT = 1


class ChainedSource(msgspec.Struct, frozen=True):
    """What an event says of its place in its shim's chain."""

    shim_id: str
    n: int = 0
    prev: str = ""


class _Line(msgspec.Struct, frozen=True):
    source: ChainedSource
    run_id: str = ""


decode_line = msgspec.json.Decoder(_Line).decode


class ShimChain(msgspec.Struct, kw_only=True):
    """One shim's part of an artifact."""

    shim_id: str
    first: int
    """number of its first event here"""
    events: int = 0
    prev: str
    """the chain's hash before the first event"""
    head: str
    """and after the last one"""


class Chain(msgspec.Struct, kw_only=True):
    """The whole file."""

    format: int = FORMAT
    run_id: str = ""
    events: int = 0
    shims: list[ShimChain] = []
    files: dict[str, str] = {}
    """SHA-256 of every other file of the artifact"""


class ChainRecord:
    """Follows the events as they are written out."""

    def __init__(self) -> None:
        self.broken: set[str] = set()
        """shims whose events do not follow from each other, or not from the first one"""
        self._run_id = ""
        self._events = 0
        self._shims: dict[str, ShimChain] = {}

    def add(self, line: bytes) -> None:
        """Takes in one event; one from elsewhere may have no chain."""
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
            follows = source.n == 1 and source.prev == seed(source.shim_id).decode()
        else:
            follows = source.n == shim.first + shim.events and source.prev == shim.head
        if not follows:
            self.broken.add(source.shim_id)
        shim.events += 1
        shim.head = link(source.prev.encode(), chained_form(line)).decode()

    def chain(self, files: dict[str, str]) -> Chain:
        """What stands at the end, over files with these hashes."""
        return Chain(
            run_id=self._run_id,
            events=self._events,
            shims=list(self._shims.values()),
            files=dict(sorted(files.items())),
        )
