"""`sub export run`: one run, out of the ledger."""

import json
import os
import sys
from collections.abc import Iterator
from typing import BinaryIO

from subluminal.cli.commands.ledger_extra import need_daemon_extra
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.cli.reading.ledger import open_ledger
from subluminal.cli.reading.naming import find_run
from subluminal.config.places import places
from subluminal.errors import ExitCode, SubluminalError
from subluminal.export.summary import as_text, summarise

EXAMPLE = """sub export run 12a8877c4af5 -o events.jsonl
sub export run 12a8877c4af5 --format summary"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN_ID", help="as `sub query runs` prints it")
    parser.add_argument(
        "--format",
        choices=["jsonl", "summary"],
        default="jsonl",
        help="jsonl: the events as they were written; summary: Markdown. Default jsonl",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where to; else stdout")
    parser.add_argument("--json", action="store_true", help="the summary as one JSON object")


def run(args: Args, out: Output) -> int:
    need_daemon_extra()
    where = places(os.environ)
    run_id = find_run(open_ledger(where, out), args.run)
    from subluminal.ledger.database import open_reader
    from subluminal.ledger.query.run_events import run_events

    connection = open_reader(where.ledger)
    try:
        lines = run_events(connection, run_id)
        if args.format == "summary" or args.json:
            lines = _summary(lines, as_json=args.json)
        _write(lines, args.output)
    finally:
        connection.close()
    return ExitCode.OK


def _summary(lines: Iterator[bytes], *, as_json: bool) -> Iterator[bytes]:
    found = summarise(json.loads(line) for line in lines)
    if as_json:
        yield json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()
        return
    for line in as_text(found):
        yield shown(line).encode()


def _write(lines: Iterator[bytes], path: str | None) -> None:
    if path is None:
        _write_to(sys.stdout.buffer, lines)
        return
    aside = f"{path}.{os.getpid()}.part"
    try:
        # Events hold what the agent did: for its owner's eyes.
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            _write_to(file, lines)
        os.replace(aside, path)
    except OSError as error:
        if os.path.exists(aside):
            os.unlink(aside)
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(f"cannot write `{path}`: {reason}") from None


def _write_to(file: BinaryIO, lines: Iterator[bytes]) -> None:
    for line in lines:
        file.write(line + b"\n")
    file.flush()
