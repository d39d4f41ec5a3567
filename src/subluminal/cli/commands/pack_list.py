"""`sub pack list`: installed packs."""

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.errors import ExitCode

EXAMPLE = """sub pack list
sub pack list --json"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object per pack")


def run(args: Args, out: Output) -> int:
    from subluminal.operator.packs.describing import list_packs

    for pack in list_packs():
        if args.json:
            out.json(pack.plain())
        elif pack.loaded is not None:
            intents = ", ".join(sorted(pack.loaded.pack.intents))
            version, fingerprint = pack.loaded.version, pack.loaded.fingerprint[:12]
            out.line(shown(f"{pack.name}  {version}  {fingerprint}  {intents}"))
        if pack.problem is not None:
            out.warning(str(pack.problem), pack.problem.hint)
    return ExitCode.OK
