"""`sub export run`: exports one run from the ledger or its journals as an artifact or a part."""

import os
import sys
from collections.abc import Callable, Iterator

from subluminal.cli.files import cannot_write, write_output
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.errors import ExitCode, UsageError
from subluminal.export.artifact import as_json, clear_artifact, make_artifact, markdown
from subluminal.export.junit import as_junit
from subluminal.export.ordering import ordered
from subluminal.export.sarif import as_sarif
from subluminal.export.summary import Summary, summarise
from subluminal.ledger.client.opening import open_run
from subluminal.visible import json_shown

EXAMPLE = """sub export run 12a8877c4af5 -o events.jsonl
sub export run 12a8877c4af5 --format bundle -o artifact
sub export run 12a8877c4af5 --format junit > junit.xml"""

_REPORTS: dict[str, Callable[[Summary], bytes]] = {
    "summary": lambda summary: markdown(summary.as_dict(), shown),
    "junit": as_junit,
    "sarif": lambda summary: as_json(as_sarif(summary)),
}

_STDOUT = "-"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN_ID", help="as `sub query runs` prints it")
    parser.add_argument(
        "--format",
        choices=["bundle", "jsonl", "junit", "sarif", "summary"],
        default="jsonl",
        help="bundle: a directory with all formats; jsonl (default): the events as they were "
        "written; summary: Markdown",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="file to write to, `-` for stdout; a directory for bundle",
    )
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object")


def run(args: Args, out: Output) -> int:
    if args.format == "bundle" and args.output in (None, _STDOUT):
        raise UsageError("a bundle needs a directory", hint="name it with `-o DIR`")
    with open_run(places(os.environ), args.run, out.warning) as shims:
        lines = ordered(shims)
        if args.json:
            out.json(summarise(lines).as_dict())
        elif args.format == "bundle":
            _bundle(args.output, lines)
        elif args.format == "jsonl":
            _write((line + b"\n" for line in lines), args.output, out)
        else:
            _write(iter([_REPORTS[args.format](summarise(lines))]), args.output, out)
    return ExitCode.OK


def _bundle(directory: str, lines: Iterator[bytes]) -> None:
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        clear_artifact(directory)
    except OSError as error:
        raise cannot_write(directory, error) from None
    make_artifact(directory, lines, shown)


def _for_a_terminal(json_line: bytes) -> bytes:
    return json_shown(json_line.decode("utf-8", "replace")).encode()


def _write(pieces: Iterator[bytes], path: str | None, out: Output) -> None:
    if path in (None, _STDOUT):
        for piece in pieces:
            # The hashes of the chain cover these bytes, so they change only for a person's eyes.
            sys.stdout.buffer.write(_for_a_terminal(piece) if out.out_is_terminal else piece)
        sys.stdout.buffer.flush()
        return
    # Events tell what the agent did, so only the owner may read them.
    write_output(path, pieces, 0o600)
