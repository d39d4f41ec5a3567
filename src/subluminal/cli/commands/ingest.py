"""`sub ingest`: stores JSONL events from elsewhere, such as a CI job's artifact."""

import os
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.config.places import places
from subluminal.errors import ExitCode, SubluminalError
from subluminal.journal.reading import MAX_LINE_BYTES
from subluminal.ledger.client.opening import need_daemon_extra

EXAMPLE = """sub ingest events.jsonl
sub run -- agent | sub ingest -"""

_PIECE_BYTES = 1_048_576


def add_arguments(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE|-", help="JSONL events; - reads stdin")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    need_daemon_extra()
    if args.file == "-":
        return _ingest(sys.stdin.buffer, out, as_json=args.json)
    try:
        with open(args.file, "rb") as file:
            return _ingest(file, out, as_json=args.json)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(f"cannot read `{args.file}`: {reason}") from None


def _ingest(file: BinaryIO, out: Output, *, as_json: bool) -> int:
    from subluminal.ledger.client.ledgerd import ensure_running

    client = ensure_running(places(os.environ))
    counts = {"stored": 0, "known": 0, "quarantined": 0}

    def skipped(offset: int, length: int) -> None:
        counts["quarantined"] += 1
        out.warning(f"the line at offset {offset} has {length} bytes: longer than any event")

    for piece in _pieces(file, skipped):
        taken = client.post("/v1/events", piece)
        counts = {name: count + taken[name] for name, count in counts.items()}
    if as_json:
        out.json(counts)
    else:
        out.line(
            f"{counts['stored']} events stored, {counts['known']} already known, "
            f"{counts['quarantined']} lines were not events"
        )
    return ExitCode.NO if counts["quarantined"] else ExitCode.OK


def _pieces(file: BinaryIO, skipped: Callable[[int, int], None]) -> Iterator[bytes]:
    """Yields the input in pieces of whole lines; the last may lack its newline.

    A line that is longer than any event is left out: `skipped` gets its offset and its length.
    """
    rest: list[bytes] = []
    size = offset = 0
    while data := file.read(_PIECE_BYTES):
        first, newline, after = data.partition(b"\n")
        size += len(first)
        if size <= MAX_LINE_BYTES:
            rest.append(first)
        else:
            rest = []
        if not newline:
            continue
        whole, newline, tail = after.rpartition(b"\n")
        if size > MAX_LINE_BYTES:
            skipped(offset, size)
        yield b"\n".join([b"".join(rest), whole])
        offset += size + 1 + len(whole) + len(newline)
        rest, size = [tail], len(tail)
    if size > MAX_LINE_BYTES:
        skipped(offset, size)
    elif size:
        yield b"".join(rest)
