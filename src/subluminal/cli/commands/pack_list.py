"""`sub pack list`: installed packs."""

from typing import TYPE_CHECKING

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.screens import cells
from subluminal.cli.screens.cells import Cell
from subluminal.cli.screens.tables import Column, print_table
from subluminal.errors import ExitCode

if TYPE_CHECKING:
    from subluminal.core.intents.packs import LoadedPack

EXAMPLE = """sub pack list
sub pack list --json"""

_COLUMNS = (Column("NAME"), Column("VERSION"), Column("FINGERPRINT"), Column("INTENTS"))


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object per pack")


def run(args: Args, out: Output) -> int:
    from subluminal.operator.packs.describing import list_packs

    packs = list_packs()
    if args.json:
        for pack in packs:
            out.json(pack.plain())
    else:
        rows = [_row(pack.name, pack.loaded) for pack in packs if pack.loaded is not None]
        print_table(out, _COLUMNS, rows, None)
    for pack in packs:
        if pack.problem is not None:
            out.warning(str(pack.problem), pack.problem.hint)
    return ExitCode.OK


def _row(name: str, loaded: "LoadedPack") -> list[Cell]:
    intents = ", ".join(sorted(loaded.pack.intents))
    fingerprint = cells.short_hash(loaded.fingerprint)
    return [Cell(name), Cell(loaded.version), Cell(fingerprint), Cell(intents)]
