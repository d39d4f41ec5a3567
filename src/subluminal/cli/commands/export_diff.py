"""`sub export diff A B`: compares two artifacts, ignoring ids and times."""

import json
from typing import Any

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.errors import ExitCode
from subluminal.export.diffing import Difference, diff_artifacts

EXAMPLE = """sub export diff yesterday today
sub export diff yesterday today --json"""

_MAX_LINES = 50
_MAX_CHARS = 120


def add_arguments(parser: Parser) -> None:
    parser.add_argument("a", metavar="A", help="a directory that `sub run --artifact` wrote")
    parser.add_argument("b", metavar="B", help="another one")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    found = diff_artifacts(args.a, args.b)
    if args.json:
        rows = [difference._asdict() for difference in found]
        out.json({"same": not found, "differences": rows})
        return ExitCode.NO if found else ExitCode.OK
    for difference in found[:_MAX_LINES]:
        out.line(shown(_told(difference)))
    if len(found) > _MAX_LINES:
        out.line(f"and {len(found) - _MAX_LINES} more; use --json to see all")
    if not found:
        out.line("no differences, ignoring ids and times")
    return ExitCode.NO if found else ExitCode.OK


def _told(difference: Difference) -> str:
    where, field, a, b = difference
    if field and where != "files":
        return f"{where}: {field}: {_short(a)} -> {_short(b)}"
    side, value = ("A", a) if b is None else ("B", b)
    return f"{where}: only in {side}: {field or _short(value)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}…"
