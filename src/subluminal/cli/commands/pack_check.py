"""`sub pack check PACK`: whether a pack has its shape, and passes eight checks."""

from subluminal.cli.commands.pack_show import add_pack
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.errors import ExitCode

EXAMPLE = """sub pack check shell
sub pack check acme_refunds:PACK --json"""


def add_arguments(parser: Parser) -> None:
    add_pack(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object per check")


def run(args: Args, out: Output) -> int:
    from subluminal.operator.packs.describing import check

    rows = check(args.pack)
    for row in rows:
        if args.json:
            out.json(row._asdict())
            continue
        word = out.paint("pass", "green") if row.passed else out.paint("FAIL", "red")
        out.line(f"{word}  {row.check}" + shown(f": {row.detail}" if row.detail else ""))
    return ExitCode.OK if all(row.passed for row in rows) else ExitCode.NO
