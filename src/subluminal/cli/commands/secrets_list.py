"""`sub secrets list`: every secret, its servers, and when it last worked. No values."""

import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.errors import ExitCode
from subluminal.operator.secrets import SecretRow, open_secrets, secret_rows

EXAMPLE = "sub secrets list --json"

_HEADS = ("name", "source", "used by", "last worked", "changed")


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object per secret")


def run(args: Args, out: Output) -> int:
    rows = secret_rows(open_secrets(os.environ))
    if args.json:
        for row in rows:
            out.json(row._asdict())
        return ExitCode.OK
    if not rows:
        out.talk("No secrets yet. Store one with `sub secrets add NAME`.")
        return ExitCode.OK
    _print(rows, out)
    return ExitCode.OK


def _print(rows: list[SecretRow], out: Output) -> None:
    table = [_HEADS, *(_cells(row) for row in rows)]
    widths = [max(len(cells[column]) for cells in table) for column in range(len(_HEADS))]
    for number, cells in enumerate(table):
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        line = "  ".join(padded).rstrip()
        out.line(out.paint(line, "bold") if number == 0 else line)


def _cells(row: SecretRow) -> tuple[str, ...]:
    return (
        shown(row.name),
        row.source,
        shown(", ".join(row.servers)) or "-",
        row.last_ok or "never",
        row.changed_at or "-",
    )
