"""`sub tail`: live events, with or without ledgerd."""

import json
import os
from collections.abc import Iterable, Iterator

from subluminal.cli.filters import (
    add_filter_arguments,
    add_idle_argument,
    read_filter,
    tell_idle,
)
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.cli.screens.events import EventLines, Facts
from subluminal.clock import now
from subluminal.config.places import Places, encode_name, places
from subluminal.errors import ExitCode
from subluminal.ledger.client.http import Client
from subluminal.ledger.client.journals import Event
from subluminal.ledger.client.live import Live
from subluminal.ledger.client.roll_call import close_what_died
from subluminal.ledger.filter.idle_runs import IdleRuns, asks_for_idle
from subluminal.ledger.filter.language import Filter, format_filter, terms_of
from subluminal.ledger.filter.matching import ODD_SHAPES, Passing
from subluminal.visible import json_shown

EXAMPLE = """sub tail
sub tail --decision BLOCK,THROTTLE --server 'git*'
sub tail --since 1h --no-follow --json"""

Held = tuple[Event, Facts]
"""An event, and what is known of its call."""

_FLAGS = (
    *("run", "server", "tool", "decision", "outcome", "status", "rule", "pack", "text", "since"),
)


def add_arguments(parser: Parser) -> None:
    parser.usage = "sub tail [FILTER…] [OPTION…]"
    add_filter_arguments(parser, _FLAGS)
    add_idle_argument(parser)
    parser.add_argument("--no-follow", action="store_true", help="print what is recorded, and exit")
    parser.add_argument("--json", action="store_true", help="print events as JSON lines")


def run(args: Args, out: Output) -> int:
    wanted = read_filter(args, out)
    where = places(os.environ)
    close_what_died(where)
    since_ms = _since(wanted, follows=not args.no_follow)
    live = Live(where, since_ms if since_ms is not None else now().wall_ms)
    hides_idle = not args.all and not asks_for_idle(wanted)
    idle = IdleRuns[Held]() if hides_idle else None
    show = _Printer(args, out, Passing(wanted), idle)
    try:
        if since_ms is not None:
            show(live.history(_one_run(wanted)))
            tell_idle(out, len(idle.hidden) if idle else 0)
        if not args.no_follow:
            show(live.wait())  # from here on, nothing that is journalled is overlooked
        if not show.has_printed and (out.err_is_terminal or not args.json):
            _tell_waiting(out, where, wanted, follows=not args.no_follow)
        while not args.no_follow:
            show(live.wait())
    finally:
        live.close()
    return ExitCode.OK


def _tell_waiting(out: Output, where: Places, wanted: Filter, *, follows: bool) -> None:
    """Says what the command waits for, because there is nothing to show."""
    matching = f" that match `{shown(format_filter(wanted))}`" if wanted else ""
    if not follows:
        out.talk(f"No events{matching} are recorded in `{shown(where.home)}`.")
        return
    source = "ledgerd" if Client(where).answers() else "the journals; ledgerd is not running"
    out.talk(f"Waiting for events{matching} in `{shown(where.home)}` (from {source}).")
    out.talk("Use a tool in a client that `sub import` wrapped, or start `sub run -- AGENT`.")


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

    def __init__(
        self, args: Args, out: Output, passing: Passing, idle: IdleRuns[Held] | None
    ) -> None:
        self._as_json = args.json
        self._out = out
        self._passing = passing
        self._idle = idle
        self._lines = EventLines(out)
        self.has_printed = False

    def __call__(self, events: Iterable[Event] | Iterator[Event]) -> None:
        printed = False
        for event in events:
            try:
                facts = self._passing.facts(event)
                if not self._passing.lets_through(event, facts):
                    continue
                admitted = self._admit((event, facts))
            except ODD_SHAPES:
                continue  # damaged: the ledger quarantines it
            for each in admitted:
                printed |= self._print(*each)
        if printed:
            self._out.data(b"")  # flushes: a reader must not wait for a full buffer

    def _admit(self, held: Held) -> list[Held]:
        return [held] if self._idle is None else self._idle.admit(held[0], held)

    def _print(self, event: Event, facts: Facts) -> bool:
        line = self._json(event) if self._as_json else self._lines.line(event, facts)
        if line is None:
            return False
        self._out.line(line)
        self.has_printed = True
        return True

    @staticmethod
    def _json(event: Event) -> str:
        return json_shown(json.dumps(event, ensure_ascii=False, separators=(",", ":")))
