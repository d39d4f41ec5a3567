"""`sub tail`: live events, with or without ledgerd."""

import json
import os
from collections.abc import Iterable, Iterator

from subluminal.cli.filters import add_filter_arguments, read_filter
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.screens.events import EventLines
from subluminal.clock import now
from subluminal.config.places import encode_name, places
from subluminal.errors import ExitCode
from subluminal.ledger.client.journals import Event
from subluminal.ledger.client.live import Live
from subluminal.ledger.client.roll_call import close_what_died
from subluminal.ledger.filter.language import Filter, terms_of
from subluminal.ledger.filter.matching import Passing

EXAMPLE = """sub tail
sub tail --decision BLOCK,THROTTLE --server 'git*'
sub tail --since 1h --no-follow --json"""

_FLAGS = ("run", "server", "tool", "decision", "status", "rule", "text", "since")


def add_arguments(parser: Parser) -> None:
    parser.usage = "sub tail [FILTER…] [OPTION…]"
    add_filter_arguments(parser, _FLAGS)
    parser.add_argument("--no-follow", action="store_true", help="print what is recorded, and exit")
    parser.add_argument("--json", action="store_true", help="print events as JSON lines")


def run(args: Args, out: Output) -> int:
    wanted = read_filter(args, out)
    where = places(os.environ)
    close_what_died(where)
    since_ms = _since(wanted, follows=not args.no_follow)
    live = Live(where, since_ms if since_ms is not None else now().wall_ms)
    show = _Printer(args, out, Passing(wanted))
    try:
        if since_ms is not None:
            show(live.history(_one_run(wanted)))
        while not args.no_follow:
            show(live.wait())
    finally:
        live.close()
    return ExitCode.OK


def _since(wanted: Filter, *, follows: bool) -> int | None:
    """Returns since when past events are shown, in milliseconds; None shows no past events."""
    times = [value for term in terms_of(wanted, "since") for value in term.values]
    if times:
        return max(int(value) for value in times)
    return 0 if terms_of(wanted, "run") or not follows else None


def _one_run(wanted: Filter) -> str | None:
    """Returns the directory of the run, if the filter names exactly one."""
    terms = [term for term in terms_of(wanted, "run") if not term.negated]
    if len(terms) != 1 or len(terms[0].values) != 1:
        return None
    name = str(terms[0].values[0])
    return None if any(char in name for char in "*?[") else encode_name(name)


class _Printer:
    """Prints the events that match the filter."""

    def __init__(self, args: Args, out: Output, passing: Passing) -> None:
        self._as_json = args.json
        self._out = out
        self._passing = passing
        self._lines = EventLines(out)

    def __call__(self, events: Iterable[Event] | Iterator[Event]) -> None:
        printed = False
        for event in events:
            facts = self._passing.facts(event)
            if not self._passing.lets_through(event, facts):
                continue
            line = self._json(event) if self._as_json else self._lines.line(event, facts)
            if line is not None:
                self._out.line(line)
                printed = True
        if printed:
            self._out.data(b"")  # flushes: a reader must not wait for a full buffer

    @staticmethod
    def _json(event: Event) -> str:
        return json.dumps(event, ensure_ascii=False, separators=(",", ":"))
