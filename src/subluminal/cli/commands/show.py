"""`sub show`: one call or one run in full."""

import json
import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.screens.detail import print_call, print_run
from subluminal.cli.screens.tables import Screen
from subluminal.clock import now
from subluminal.config.places import Places, places
from subluminal.errors import ExitCode, SubluminalError
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
    where = places(os.environ)
    ledger = open_ledger(where, out.warning)
    meant = find_meant(ledger, args.id)
    screen = Screen(out, now().wall_ms)
    if meant.call_id is not None:
        _show_call(screen, where, ledger, meant.call_id, as_json=args.json)
    elif meant.run_id is not None:
        _show_run(screen, ledger, meant.run_id, as_json=args.json)
    return ExitCode.OK


def _show_call(
    screen: Screen, where: Places, ledger: Ledger, call_id: str, *, as_json: bool
) -> None:
    detail = ledger.call(call_id) or {}
    detail["execution"] = None
    if detail["call"]["kernel"] is not None:
        detail |= _execution(where, ledger, detail["call"])
    detail["call"] = with_unknown_status(detail["call"])
    if as_json:
        _print_json(screen.out, detail)
    else:
        print_call(screen, detail)


def _execution(where: Places, ledger: Ledger, call: Row) -> Row:
    """Returns how far the execution is that a call claimed, or why that is not known."""
    from subluminal.operator.intents import open_intents  # loads the kernel

    try:
        with open_intents(where, ledger) as intents:
            return {"execution": intents.status_of(call)}
    except SubluminalError as problem:
        return {"execution_problem": str(problem)}


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
