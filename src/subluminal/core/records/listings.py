"""Which tools a server offers, page by page: what is recorded of it, and whether it changed."""

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from msgspec import structs

from subluminal.contracts.events import ListedTool, ToolListing, ToolsListed
from subluminal.contracts.templates import encode_json
from subluminal.core.records.previews import Previewer
from subluminal.core.runs.run import Run

MAX_LISTING_BYTES = 1 << 18
"""About how large a tools_listed event may be: names and hashes first, then definitions."""

MAX_PAGES = 32
"""Pages that are remembered, to tell a change; past it, the oldest is forgotten."""

_ENTRY_BYTES = 96
"""What an entry takes besides its name and definition: a hash and the members' names."""


class Definition(NamedTuple):
    """A tool, and its canonical definition as the server sent it."""

    name: str
    text: bytes


class Listings:
    """What one server last said of its tools."""

    def __init__(self, previewer: Previewer) -> None:
        self._previewer = previewer
        self._pages: dict[tuple[str, str], ToolListing] = {}

    def changed(
        self, server_name: str, cursor: str, tools: Sequence[Definition] | None
    ) -> ToolListing | None:
        """Takes a page; returns what to record of it, None if it is the one known already.

        `tools` is None where the answer was too large to be looked at.
        """
        listing = self._hashed(server_name, tools)
        key = (server_name, cursor)
        known = self._pages.pop(key, None)
        if known is not None and _essence(known) == _essence(listing):
            self._pages[key] = known
            return None
        if len(self._pages) >= MAX_PAGES:
            del self._pages[next(iter(self._pages))]
        self._pages[key] = full = self._defined(listing, tools or ())
        return full

    def record_all(self, run: Run) -> None:
        """Records what is known in a run that has just been entered."""
        for listing in self._pages.values():
            record_listing(run, listing)

    def _hashed(self, server_name: str, tools: Sequence[Definition] | None) -> ToolListing:
        """A page without definitions: as many tools as there is room for."""
        listed: list[ListedTool] = []
        room = MAX_LISTING_BYTES
        for tool in tools or ():
            name = self._previewer.safe(tool.name)
            room -= _entry_bytes(name)
            if room < 0:
                break
            listed.append(ListedTool(name=name, hash=sha256(tool.text).hexdigest()))
        truncated = tools is None or len(listed) < len(tools)
        return ToolListing(server_name=server_name, tools=listed, truncated=truncated)

    def _defined(self, listing: ToolListing, tools: Sequence[Definition]) -> ToolListing:
        """Adds the definitions that still fit."""
        room = MAX_LISTING_BYTES - sum(_entry_bytes(each.name) for each in listing.tools)
        truncated, listed = listing.truncated, []
        # Entries are the first of the tools, in the same order.
        for entry, tool in zip(listing.tools, tools, strict=False):
            shown = self._previewer.definition(tool.text) if len(tool.text) <= room else ""
            size = len(encode_json(shown)) if shown else 0
            if shown and size <= room:
                room -= size
                listed.append(structs.replace(entry, definition=shown))
            else:
                truncated = truncated or shown is not None
                listed.append(entry)
        return structs.replace(listing, tools=listed, truncated=truncated)


def record_listing(run: Run, listing: ToolListing) -> None:
    """Records a page; a journal that cannot take it costs nobody anything."""
    run.record(lambda: run.emit(ToolsListed, listing=listing))


def _entry_bytes(name: str) -> int:
    return _ENTRY_BYTES + len(encode_json(name))


def _essence(listing: ToolListing) -> tuple[bool, frozenset[tuple[str, str]]]:
    """What makes two listings the same: not their order, nor which definitions there was room for.

    A listing that was too large to be looked at is no empty one.
    """
    tools = frozenset((each.name, each.hash) for each in listing.tools)
    return (not tools and listing.truncated, tools)
