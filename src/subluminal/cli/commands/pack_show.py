"""`sub pack show PACK`: what a pack declares."""

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.errors import ExitCode

EXAMPLE = """sub pack show payments_pix
sub pack show acme_refunds:PACK --json"""


def add_arguments(parser: Parser) -> None:
    add_pack(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_pack(parser: Parser) -> None:
    """Adds the argument that all commands about one pack share."""
    parser.add_argument(
        "pack",
        metavar="PACK",
        help="the name of an installed pack, or MODULE:ATTRIBUTE of a pack of yours, "
        "which is imported",
    )


def run(args: Args, out: Output) -> int:
    from subluminal.operator.packs.describing import describe, find_pack

    told = describe(find_pack(args.pack))
    if args.json:
        out.json(told)
        return ExitCode.OK
    taint = told.pop("taint")
    told["intents"] = [f"{kind} ({taint[kind]})" for kind in told["intents"]]
    for phase, guards in told.pop("guards").items():
        told[f"{phase} guards"] = [name or "(no name)" for name in guards]
    for label, value in told.items():
        text = ", ".join(value) if isinstance(value, list) else value
        out.line(f"{out.paint(f'{label:<17}', 'dim')}{shown(text or '-')}")
    return ExitCode.OK
