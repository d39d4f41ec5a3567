"""Proves a chain: finds an edited, deleted, inserted or moved event (provable-ledger).

`chain` explains what is chained. Artifacts and the ledger's rows are proven with the same
`ChainCheck`. It parses JSON and is not on the path of a call.
"""

from hashlib import sha256
from typing import NamedTuple

from msgspec import MsgspecError, Struct, ValidationError, json

from subluminal.journal.chain import chained_form, link, preview_text_json


class Source(Struct, frozen=True):
    """An event's place in its shim's chain."""

    shim_id: str
    n: int
    prev: str


class _Preview(Struct, frozen=True):
    hash: str = ""


class _Call(Struct, frozen=True):
    preview: _Preview = _Preview()


class _Line(Struct, frozen=True):
    source: Source
    call: _Call = _Call()
    preview: _Preview = _Preview()


class _Placed(Struct, frozen=True):
    """A line of a newer version: its other fields may have another shape."""

    source: Source


_decode_line = json.Decoder(_Line).decode
_decode_placed = json.Decoder(_Placed).decode
_decode_text = json.Decoder(str).decode


class Damage(NamedTuple):
    """The first event of a chain that is wrong."""

    shim_id: str
    n: int
    """number of the event that was changed or is missing"""
    message: str


class ChainCheck:
    """Checks one shim's chain, event by event, up to the first damage."""

    def __init__(self, shim_id: str, n: int = 1, prev: bytes | None = None) -> None:
        """Starts before event `n`. Without `prev`, any beginning is accepted: only the home that
        sealed it can check it (`seals`)."""
        self.shim_id = shim_id
        self.n = n
        """number that the next event must have"""
        self.prev = prev or b""
        """the chain's hash before the next event; empty before a beginning that is not known"""
        self.damage: Damage | None = None

    def feed(self, line: bytes) -> Damage | None:
        """Checks the next line, with or without its preview text."""
        if self.damage is None:
            self.damage = self._check(line)
        return self.damage

    def end(self, head: bytes) -> Damage | None:
        """Checks that the chain ends with the hash that a checkpoint or an artifact names."""
        if self.damage is None and self.prev != head:
            self.damage = Damage(
                self.shim_id,
                self.n - 1,
                f"event {self.n - 1} was changed, or it is not the last one",
            )
        return self.damage

    def _check(self, line: bytes) -> Damage | None:
        try:
            parsed = _parse(line)
        except (MsgspecError, RecursionError) as error:
            return Damage(self.shim_id, self.n, f"event {self.n} is not a chained event: {error}")
        source = parsed.source
        problem = self._misplaced(source) or _changed_text(line, parsed, source.n)
        if problem:
            return Damage(self.shim_id, min(source.n, self.n), problem)
        self.n += 1
        self.prev = link(source.prev.encode(), chained_form(line))
        return None

    def _misplaced(self, source: Source) -> str | None:
        if source.shim_id != self.shim_id:
            return f"event {self.n} belongs to another shim, `{source.shim_id}`"
        if source.n > self.n:
            return f"event {self.n} is missing: event {source.n} is in its place"
        if source.n < self.n:
            return f"event {source.n} appears again where event {self.n} should be"
        if self.prev and source.prev.encode() != self.prev:
            changed = f"event {self.n - 1}" if self.n > 1 else "it"
            either = f"{changed} was changed, or event {self.n} was inserted"
            return f"event {self.n} does not continue the chain: {either}"
        return None


def _parse(line: bytes) -> _Line:
    try:
        return _decode_line(line)
    except ValidationError:
        return _Line(_decode_placed(line).source)


def _changed_text(line: bytes, parsed: _Line, n: int) -> str | None:
    text = preview_text_json(line)
    if text is None:
        return None
    committed = parsed.call.preview.hash or parsed.preview.hash
    if sha256(_decode_text(text).encode()).hexdigest() != committed:
        return f"event {n} was changed: its preview does not match its hash"
    return None
