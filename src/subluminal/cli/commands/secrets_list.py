"""`sub secrets list`: every secret, who uses it, and when it last worked. No values."""

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.contracts.vocabulary import SecretSource
from subluminal.errors import ExitCode
from subluminal.operator.secrets_shared import Row, open_home, row_of

EXAMPLE = "sub secrets list --json"

_HEADS = ("name", "source", "used by", "last worked", "changed")


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object a secret")


def run(args: Args, out: Output) -> int:
    home = open_home()
    rows = [
        row_of(home, source, name) for source in SecretSource for name in sorted(home.names(source))
    ]
    if args.json:
        for row in rows:
            out.json(row._asdict())
        return ExitCode.OK
    if not rows:
        out.talk("no secrets yet; `sub secrets add NAME` stores one")
        return ExitCode.OK
    _print(rows, out)
    return ExitCode.OK


def _print(rows: list[Row], out: Output) -> None:
    table = [_HEADS, *(_cells(row) for row in rows)]
    widths = [max(len(cells[column]) for cells in table) for column in range(len(_HEADS))]
    for number, cells in enumerate(table):
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        line = "  ".join(padded).rstrip()
        out.line(out.paint(line, "bold") if number == 0 else line)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        shown(row.name),
        row.source,
        shown(", ".join(row.servers)) or "-",
        row.last_ok or "never yet",
        row.changed_at or "-",
    )
