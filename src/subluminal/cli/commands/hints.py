"""`sub hints`: the hints that agents got, how they reacted, and how often hints helped."""

import json
import os
from collections.abc import Callable

from subluminal.cli.filters import FLAGS, add_filter_arguments, add_row_arguments, read_filter
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.screens.lists import print_hints, print_recovery
from subluminal.cli.screens.tables import Screen
from subluminal.clock import now
from subluminal.config.places import places
from subluminal.errors import ExitCode, UsageError
from subluminal.ledger.client.finding import newest_rows
from subluminal.ledger.client.ledger import Found, Ledger, Page, Row
from subluminal.ledger.client.opening import open_ledger
from subluminal.ledger.filter.language import Filter, Term, format_filter

EXAMPLE = """sub hints
sub hints --by rule --since 7d
sub hints --outcome gave_up --tool 'git_*' --json"""

_FLAGS = tuple(name for name in FLAGS if name != "outcome")
"""Flags of the filter: here `--outcome` is that of the hint, not of the call."""
_OUTCOMES = ["followed", "retried", "gave_up", "pending"]


def add_arguments(parser: Parser) -> None:
    add_filter_arguments(parser, _FLAGS)
    parser.add_argument("--outcome", choices=_OUTCOMES, help="only hints with this outcome")
    parser.add_argument(
        "--by",
        choices=["rule", "client", "both"],
        help="count how often hints helped, per rule, client or both, instead of listing them",
    )
    add_row_arguments(parser)


def run(args: Args, out: Output) -> int:
    wanted = read_filter(args, out, flags=_FLAGS)
    is_unfiltered = args.outcome is None and all(_is_time(term) for term in wanted)
    if args.by and not is_unfiltered:
        raise UsageError(
            "`--by` can only be combined with `--since` and `--until`",
            hint="leave the other filters out",
        )
    ledger = open_ledger(places(os.environ), out.warning)
    screen = Screen(out, now().wall_ms)
    counts = _recovery(ledger, args.by or "both", wanted) if is_unfiltered else []
    if args.by:
        _show(screen, counts, print_recovery, as_json=args.json)
        return ExitCode.OK
    rows = _hints(ledger, wanted, args)
    if counts and not args.json:
        print_recovery(screen, counts)
        out.line()
    _show(screen, rows, print_hints, as_json=args.json)
    return ExitCode.OK


def _is_time(term: Term) -> bool:
    return term.field in ("since", "until") and not term.negated


def _hints(ledger: Ledger, wanted: Filter, args: Args) -> list[Row]:
    def ask(where: str, page: Page) -> Found:
        return ledger.hints(where, page, args.outcome)

    return newest_rows(ask, format_filter(wanted), args.limit, newest_first=args.order == "newest")


def _recovery(ledger: Ledger, by: str, wanted: Filter) -> list[Row]:
    since = [int(term.values[0]) for term in wanted if term.field == "since"]
    until = [int(term.values[0]) for term in wanted if term.field == "until"]
    return ledger.recovery(by, max(since, default=None), min(until, default=None))


def _show(
    screen: Screen,
    rows: list[Row],
    print_rows: Callable[[Screen, list[Row]], None],
    *,
    as_json: bool,
) -> None:
    if as_json:
        for row in rows:
            screen.out.json_text(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
    elif rows:
        print_rows(screen, rows)
    else:
        screen.out.talk("No hints: no call was refused with a hint.")
