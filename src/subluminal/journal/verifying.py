"""Proves a journal's chain: finds an edit, deletion, insertion or reorder of its lines (provable-ledger).

Not on the hot path: it parses. The ledger proves its rows with the same `ChainCheck`.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from msgspec import MsgspecError, Struct, json

from subluminal.journal.chain import chained_form, link, preview_text_json, seed


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


_decode_line = json.Decoder(_Line).decode
_decode_text = json.Decoder(str).decode


class Damage(NamedTuple):
    """The first thing that does not hold in a chain."""

    shim_id: str
    n: int
    """the event that is wrong, or whose absence is"""
    message: str


class ChainCheck:
    """Follows one shim's chain, event by event. Stops at the first damage."""

    def __init__(self, shim_id: str, n: int = 1, prev: bytes | None = None) -> None:
        self.shim_id = shim_id
        self.n = n
        """the number that the next event must carry"""
        self.prev = seed(shim_id) if prev is None else prev
        self.damage: Damage | None = None

    def feed(self, line: bytes) -> Damage | None:
        """Checks one line, with or without its preview text."""
        if self.damage is None:
            self.damage = self._check(line)
        return self.damage

    def end(self, head: bytes) -> Damage | None:
        """Checks that the chain ends where something outside of it says it does."""
        if self.damage is None and self.prev != head:
            self.damage = Damage(
                self.shim_id,
                self.n - 1,
                f"event {self.n - 1} was changed, or it is not the last one",
            )
        return self.damage

    def _check(self, line: bytes) -> Damage | None:
        try:
            parsed = _decode_line(line)
        except MsgspecError as error:
            return Damage(self.shim_id, self.n, f"event {self.n} is no chained event: {error}")
        source = parsed.source
        problem = self._misplaced(source) or _changed_text(line, parsed, source.n)
        if problem:
            return Damage(self.shim_id, min(source.n, self.n), problem)
        self.n += 1
        self.prev = link(self.prev, chained_form(line))
        return None

    def _misplaced(self, source: Source) -> str | None:
        if source.shim_id != self.shim_id:
            return f"event {self.n} is of another shim, `{source.shim_id}`"
        if source.n > self.n:
            return f"event {self.n} is missing: event {source.n} stands in its place"
        if source.n < self.n:
            return f"event {source.n} stands again where event {self.n} should be"
        if source.prev.encode() != self.prev:
            before = f"event {self.n - 1} was changed" if self.n > 1 else "it was changed"
            return f"event {self.n} does not continue the chain: {before}, or this one was inserted"
        return None


def _changed_text(line: bytes, parsed: _Line, n: int) -> str | None:
    text = preview_text_json(line)
    if text is None:
        return None
    committed = parsed.call.preview.hash or parsed.preview.hash
    if sha256(_decode_text(text).encode()).hexdigest() != committed:
        return f"event {n} was changed: its preview is not the one that its hash commits to"
    return None


def verify_lines(
    lines: Iterable[bytes], shim_id: str, *, head: bytes | None = None
) -> Damage | None:
    """Returns the first damage of a whole chain; None if it holds.

    The last event is only proven by `head`, the hash after it, if that is known.
    """
    check = ChainCheck(shim_id)
    for line in lines:
        if check.feed(line):
            return check.damage
    return check.end(head) if head is not None else None
