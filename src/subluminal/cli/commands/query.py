"""`sub query`: searches the ledger."""

import json
import os

from subluminal.cli.filters import FLAGS, add_filter_arguments, add_row_arguments, read_filter
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.screens.lists import (
    print_asked,
    print_calls,
    print_hints,
    print_runs,
    print_tools,
)
from subluminal.cli.screens.tables import Screen
from subluminal.clock import now
from subluminal.config.places import places
from subluminal.errors import ExitCode, UsageError
from subluminal.ledger.client.finding import rows_of, with_unknown_status
from subluminal.ledger.client.ledger import Ledger, Row
from subluminal.ledger.client.opening import open_ledger
from subluminal.ledger.filter.fields import CALL_FIELDS, RUN_FIELDS
from subluminal.ledger.filter.language import Filter, format_filter

EXAMPLE = """sub query decision:BLOCK since:1d
sub query runs --status FAILED
sub query calls --server 'git*' --text "rm -rf" --json"""

_LISTS = {
    "calls": print_calls,
    "runs": print_runs,
    "hints": print_hints,
    "approvals": print_asked,
    "tools": print_tools,
}


def add_arguments(parser: Parser) -> None:
    parser.usage = "sub query [calls|runs|hints|approvals|tools] [FILTER…] [OPTION…]"
    add_filter_arguments(parser, FLAGS)
    add_row_arguments(parser)


def run(args: Args, out: Output) -> int:
    what = "calls"
    if args.filter and args.filter[0] in _LISTS:
        what = args.filter.pop(0)
    fields = RUN_FIELDS if what == "runs" else CALL_FIELDS
    wanted = read_filter(args, out, fields)
    ledger = open_ledger(places(os.environ), out.warning)
    rows = _tools(ledger, wanted) if what == "tools" else _rows(ledger, what, wanted, args)
    if what == "calls":
        rows = [with_unknown_status(row) for row in rows]
    if args.json:
        for row in rows:
            out.line(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
    elif rows:
        _LISTS[what](Screen(out, now().wall_ms), rows)
    else:
        out.talk(
            f"No {what} match."
            if wanted
            else f"No {what} recorded yet. Start an agent with `sub run -- AGENT`."
        )
    return ExitCode.OK


def _rows(ledger: Ledger, what: str, wanted: Filter, args: Args) -> list[Row]:
    ask = getattr(ledger, what)
    return rows_of(ask, format_filter(wanted), args.limit, newest_first=args.order == "newest")


def _tools(ledger: Ledger, wanted: Filter) -> list[Row]:
    for term in wanted:
        if term.field not in ("server", "tool"):
            raise UsageError(
                f"tools cannot be filtered by `{term.field}`", hint="use `server` or `tool`"
            )
    from subluminal.ledger.filter.matching import matches

    return [
        row
        for row in ledger.tools()
        if matches(wanted, {"server": row["server_name"], "tool": row["tool_name"]})
    ]
