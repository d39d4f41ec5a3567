"""Finds secrets in existing journals that today's redactor would mask, and removes them.

Preview texts are not part of the hash chain, only their hashes are (provable-ledger): dropping one
leaves the chain whole. Everything else in an event is chained; it is overwritten only if the caller
says that the chain may break. Files are changed in place and keep their size, because shims append
to them and the ledger remembers offsets in them: a line that became shorter is filled with spaces.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from subluminal.core.records.redaction import json_text
from subluminal.core.records.redaction.matching import Hit, TooManyHits
from subluminal.core.records.redaction.redactor import TOO_MANY, Redactor
from subluminal.journal.chain import preview_place
from subluminal.journal.reading import Follower, Overlong, journal_files

PREVIEW, EVENT = "preview", "event"


class JournalFinding(NamedTuple):
    """A line of a journal with a secret in it."""

    path: str
    offset: int
    """offset of the line's first byte in the file"""
    where: str
    """`preview` if only the preview text has a secret, else `event`"""
    names: tuple[str, ...]
    line: bytes


def scan_journals(root: str, redactor: Redactor) -> Iterator[JournalFinding]:
    """Yields the findings in every journal below a directory."""
    for file in journal_files(root):
        follower = Follower(file.path)
        try:
            yield from _scan(follower, redactor)
        finally:
            follower.close()


def _scan(follower: Follower, redactor: Redactor) -> Iterator[JournalFinding]:
    while (read := follower.read()) is not None:
        if isinstance(read, Overlong):
            continue
        offset = read.offset
        for line in read.lines:
            hits = _hits(redactor, line)
            if hits is None or hits:
                names = (TOO_MANY,) if hits is None else redactor.names_of(hits)
                yield JournalFinding(follower.path, offset, _where(line, hits), names, line)
            offset += len(line) + 1


def _hits(redactor: Redactor, line: bytes) -> list[Hit] | None:
    try:
        return redactor.find(line)
    except TooManyHits:
        return None


def _where(line: bytes, hits: list[Hit] | None) -> str:
    place = preview_place(line)
    if place is None:
        return EVENT
    if hits is None:
        return PREVIEW
    return PREVIEW if all(place[0] < hit.start and hit.end <= place[1] for hit in hits) else EVENT


def rewrite(finding: JournalFinding, redactor: Redactor, *, may_break_chain: bool) -> bool:
    """Removes a secret from its file; returns False if that would break the chain and must not."""
    line = without_preview(finding.line)
    rest = _hits(redactor, line)
    if rest or rest is None:
        if not may_break_chain:
            return False
        line = _blotted(line, rest)
    data = line.ljust(len(finding.line))
    fd = os.open(finding.path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.pwrite(fd, data, finding.offset)
        os.fsync(fd)
    finally:
        os.close(fd)
    return True


def without_preview(line: bytes) -> bytes:
    """Returns the line without its preview text, as it is chained."""
    place = preview_place(line)
    return line if place is None else line[: place[0]] + line[place[1] :]


def _blotted(line: bytes, hits: list[Hit] | None) -> bytes:
    """Overwrites hits byte for byte, because a mark may be longer than a hit. JSON stays JSON."""
    if hits is None:
        return b"{}"
    view = json_text.view_of(line)
    blotted = bytearray(line)
    for hit in hits:
        span = json_text.whole_escapes(view, (hit.start, hit.end))
        for (start, end), is_number in json_text.split_at_structure(view, span):
            blotted[start:end] = (b"1" if is_number else b"*") * (end - start)
    return bytes(blotted)
