"""`sub show`: one call or one run in full."""

import json
import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.screens.detail import print_call, print_run
from subluminal.cli.screens.tables import Screen
from subluminal.clock import now
from subluminal.config.places import places
from subluminal.errors import ExitCode
from subluminal.ledger.client.finding import find_meant, with_unknown_status
from subluminal.ledger.client.ledger import Ledger, Page, Row
from subluminal.ledger.client.opening import open_ledger
from subluminal.ledger.filter.language import Term, format_filter

EXAMPLE = """sub show 12a8877c4af5
sub show 01a1dda7-8a7e-77f9-bd0f-12a8877c4af5 --json"""

_MAX_CALLS = 1_000


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "id", metavar="CALL_ID|RUN_ID", help="as `sub query` prints it; its end will do"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    ledger = open_ledger(places(os.environ), out.warning)
    meant = find_meant(ledger, args.id)
    screen = Screen(out, now().wall_ms)
    if meant.call_id is not None:
        _show_call(screen, ledger, meant.call_id, as_json=args.json)
    elif meant.run_id is not None:
        _show_run(screen, ledger, meant.run_id, as_json=args.json)
    return ExitCode.OK


def _show_call(screen: Screen, ledger: Ledger, call_id: str, *, as_json: bool) -> None:
    detail = ledger.call(call_id) or {}
    detail["call"] = with_unknown_status(detail["call"])
    if as_json:
        _print_json(screen.out, detail)
    else:
        print_call(screen, detail)


def _show_run(screen: Screen, ledger: Ledger, run_id: str, *, as_json: bool) -> None:
    found = ledger.run(run_id) or {}
    where = format_filter([Term("run", ":", (run_id,))])
    page = ledger.calls(where, Page(_MAX_CALLS, newest_first=False))
    calls = [with_unknown_status(row) for row in page.rows]
    if as_json:
        _print_json(screen.out, {"run": found, "calls": calls})
    else:
        print_run(screen, found, calls, is_cut=page.next is not None)


def _print_json(out: Output, value: Row) -> None:
    out.json_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
