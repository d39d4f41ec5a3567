"""Records the tools that a server offers, page by page, whenever they change."""

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from msgspec import structs

from subluminal.contracts.events import ListedTool, ToolListing, ToolsListed
from subluminal.contracts.templates import encode_json
from subluminal.core.records.previews import Previewer
from subluminal.core.runs.run import Run

MAX_LISTING_BYTES = 1 << 18
"""Approximate limit of a tools_listed event: names and hashes come first, then definitions."""

MAX_PAGES = 32
"""Most pages that are remembered, to notice a change; past it, the oldest is forgotten."""

_ENTRY_BYTES = 96
"""Size of an entry without its name and definition: the hash and the names of the members."""


class Definition(NamedTuple):
    """A tool's name, and the canonical text of its definition."""

    name: str
    text: bytes


class Listings:
    """The pages of tools that servers listed last."""

    def __init__(self, previewer: Previewer) -> None:
        self._previewer = previewer
        self._pages: dict[tuple[str, str], ToolListing] = {}

    def changed(
        self, server_name: str, cursor: str, tools: Sequence[Definition] | None
    ) -> ToolListing | None:
        """Takes a page; returns what to record of it, or None if it did not change.

        `tools` is None if the answer was too large to inspect.
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
        """Records every known page in a run that has just been entered."""
        for listing in list(self._pages.values()):  # another thread may add a page
            record_listing(run, listing)

    def _hashed(self, server_name: str, tools: Sequence[Definition] | None) -> ToolListing:
        """Returns a page without definitions, with as many tools as fit."""
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
        # The entries are the first of the tools, in the same order.
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
    """Records a page. If the journal is unavailable, only this record is lost."""
    run.record(lambda: run.emit(ToolsListed, listing=listing))


def _entry_bytes(name: str) -> int:
    return _ENTRY_BYTES + len(encode_json(name))


def _essence(listing: ToolListing) -> tuple[bool, frozenset[tuple[str, str]]]:
    """Returns what makes two pages equal: names and hashes, whatever their order.

    Which definitions fitted does not count. A page that was too large to inspect differs from an
    empty one.
    """
    tools = frozenset((each.name, each.hash) for each in listing.tools)
    return (not tools and listing.truncated, tools)
