"""`sub query`: searches the ledger."""

import json
import os

from subluminal.cli.filters import (
    FLAGS,
    add_filter_arguments,
    add_idle_argument,
    add_row_arguments,
    read_filter,
    tell_idle,
)
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.screens.lists import (
    print_asked,
    print_calls,
    print_hints,
    print_intents,
    print_runs,
    print_tools,
)
from subluminal.cli.screens.tables import Screen
from subluminal.clock import now
from subluminal.config.places import Places, places
from subluminal.errors import ExitCode, UsageError
from subluminal.ledger.client.finding import newest_rows, with_unknown_status
from subluminal.ledger.client.ledger import Ledger, Row
from subluminal.ledger.client.opening import open_ledger
from subluminal.ledger.filter.fields import (
    CALL_FIELDS,
    EXECUTION_STATUSES,
    INTENT_FIELDS,
    RUN_FIELDS,
)
from subluminal.ledger.filter.idle_runs import asks_for_idle, is_idle
from subluminal.ledger.filter.language import Filter, format_filter

EXAMPLE = """sub query decision:BLOCK since:1d
sub query runs --status FAILED
sub query calls --server 'git*' --text "rm -rf" --json
sub query intents --status unknown"""

_LISTS = {
    "calls": print_calls,
    "runs": print_runs,
    "hints": print_hints,
    "intents": print_intents,
    "approvals": print_asked,
    "tools": print_tools,
}

_FIELDS = {"runs": RUN_FIELDS, "intents": INTENT_FIELDS}
"""Fields of the filter; those of calls for all other lists"""


def add_arguments(parser: Parser) -> None:
    parser.usage = "sub query [calls|runs|hints|intents|approvals|tools] [FILTER…] [OPTION…]"
    more = {"status": f"of an intent, how far its execution is: {', '.join(EXECUTION_STATUSES)}"}
    add_filter_arguments(parser, FLAGS, more)
    add_row_arguments(parser)
    add_idle_argument(parser)


def run(args: Args, out: Output) -> int:
    what = "calls"
    if args.filter and args.filter[0] in _LISTS:
        what = args.filter.pop(0)
    wanted = read_filter(args, out, _FIELDS.get(what, CALL_FIELDS))
    if args.all and what != "runs":
        raise UsageError("`--all` is for runs", hint="write `sub query runs --all`")
    where = places(os.environ)
    ledger = open_ledger(where, out.warning)
    idle = _Idle(is_hidden=what == "runs" and not args.all and not asks_for_idle(wanted))
    if what == "tools":
        rows = _tools(ledger, wanted)
    elif what == "intents":
        rows = _intents(where, ledger, wanted, args)
    else:
        rows = _rows(ledger, what, wanted, args, idle)
    if what == "calls":
        rows = [with_unknown_status(row) for row in rows]
    if args.json:
        for row in rows:
            out.json_text(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
    elif rows:
        _LISTS[what](Screen(out, now().wall_ms), rows)
    elif not idle.hidden:
        out.talk(
            f"No {what} match."
            if wanted
            else f"No {what} recorded yet. Start an agent with `sub run -- AGENT`."
        )
    tell_idle(out, idle.hidden)
    return ExitCode.OK


class _Idle:
    """Counts the runs without a call, which are left out."""

    def __init__(self, *, is_hidden: bool) -> None:
        self._is_hidden = is_hidden
        self.hidden = 0

    def keep(self, row: Row) -> bool:
        """Whether a row is shown."""
        if not self._is_hidden or not is_idle(row["status"], row["calls"]):
            return True
        self.hidden += 1
        return False


def _rows(ledger: Ledger, what: str, wanted: Filter, args: Args, idle: _Idle) -> list[Row]:
    return newest_rows(
        getattr(ledger, what),
        format_filter(wanted),
        args.limit,
        newest_first=args.order == "newest",
        keep=idle.keep,
    )


def _intents(where: Places, ledger: Ledger, wanted: Filter, args: Args) -> list[Row]:
    from subluminal.operator.intents import open_intents  # loads the kernel

    with open_intents(where, ledger) as intents:
        return intents.newest(wanted, args.limit, newest_first=args.order == "newest")


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
