"""The filter on a command line, for `sub tail`, `sub query` and `sub hints`: terms and flags."""

from collections.abc import Mapping
from types import MappingProxyType

from subluminal.cli.frame import Args, Parser, positive
from subluminal.cli.output import Output, shown
from subluminal.clock import now
from subluminal.errors import UsageError
from subluminal.ledger.filter.fields import CALL_FIELDS, INTENT_FIELDS, Field
from subluminal.ledger.filter.language import Filter, InvalidFilter, Term, make_term, parse_filter
from subluminal.ledger.filter.values import InvalidValue

FLAGS = (
    *("run", "server", "tool", "decision", "outcome", "status", "rule", "pack", "taint", "text"),
    *("since", "until"),
)


def add_filter_arguments(
    parser: Parser, flags: tuple[str, ...] = FLAGS, more: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Adds the filter and the flags that stand for its terms; `more` adds to their help."""
    parser.terms = "filter"
    parser.add_argument(
        "filter",
        nargs="*",
        help='for example: decision:BLOCK server:git* latency>500 text:"rm -rf"',
    )
    metavars = {"since": "AGE|TIME", "until": "AGE|TIME", "text": "WORDS", "run": "ID"}
    for name in flags:
        words = CALL_FIELDS[name].words
        doc = CALL_FIELDS[name].doc + (f": {', '.join(words)}" if words else "")
        if name in more:
            doc += f"; {more[name]}"
        parser.add_argument(f"--{name}", metavar=metavars.get(name, name.upper()), help=doc)


def add_row_arguments(parser: Parser) -> None:
    """Adds how many rows to print, in which order, and how."""
    parser.add_argument(
        "--limit",
        type=positive,
        default=50,
        metavar="N",
        help="number of rows, always the newest ones; default 50",
    )
    parser.add_argument(
        "--order",
        choices=["oldest", "newest"],
        default="oldest",
        help="which row comes first; default oldest, so that the newest is the last line",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per row")


def add_idle_argument(parser: Parser) -> None:
    """Adds the flag that shows runs without a call too."""
    parser.add_argument(
        "--all", action="store_true", help="show runs without a call too, such as `claude mcp list`"
    )


def tell_idle(out: Output, hidden: int) -> None:
    """Says how many runs were left out."""
    if hidden:
        is_one = hidden == 1
        runs = "1 run without a call is" if is_one else f"{hidden} runs without a call are"
        out.talk(f"{runs} not shown; `--all` shows {'it' if is_one else 'them'}.")


def read_filter(
    args: Args,
    out: Output,
    fields: dict[str, Field] = CALL_FIELDS,
    flags: tuple[str, ...] = FLAGS,
) -> Filter:
    """Parses the filter. Before it raises an error, it prints the filter and marks the place."""
    now_ms = now().wall_ms
    terms: list[Term] = []
    for name in flags:
        value = getattr(args, name, None)
        if value is None:
            continue
        if name not in fields:
            raise UsageError(
                f"`--{name}` cannot be used here", hint=f"use one of {', '.join(fields)}"
            )
        try:
            terms.append(make_term(name, value, now_ms=now_ms, fields=fields))
        except InvalidValue as problem:
            raise UsageError(f"`--{name}`: {problem}", hint=problem.hint) from None
    text = _joined(args.filter)
    try:
        return (*terms, *parse_filter(text, now_ms=now_ms, fields=fields))
    except InvalidFilter as problem:
        for line in problem.pointed():
            out.talk("  " + shown(line))
        raise


def _joined(words: list[str]) -> str:
    """Joins the words to one filter. Quotes that the shell removed are added: `text:"rm -rf"`."""
    return " ".join(_requoted(word) if len(words) > 1 else word for word in words)


def _requoted(word: str) -> str:
    if '"' in word or not any(char.isspace() for char in word):
        return word
    field, colon, value = word.partition(":")
    if colon and field.lstrip("-") in INTENT_FIELDS:
        return f'{field}:"{value}"'
    return f'"{word}"'


def since_ms(text: str | None) -> int | None:
    """Parses `--since`, for commands without a filter; returns milliseconds since the epoch."""
    if text is None:
        return None
    try:
        term = make_term("since", text, now_ms=now().wall_ms)
    except InvalidValue as problem:
        raise UsageError(f"`--since`: {problem}", hint=problem.hint) from None
    return int(term.values[0])
