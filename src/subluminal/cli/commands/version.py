"""`sub version`: prints the versions of sub, the Interface Pack and Python."""

import sys

from subluminal import __version__
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.contracts import PACK_VERSION
from subluminal.errors import ExitCode

EXAMPLE = "sub version --json"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    python = ".".join(str(part) for part in sys.version_info[:3])
    if args.json:
        out.json({"version": __version__, "pack": PACK_VERSION, "python": python})
    else:
        out.line(f"sub {__version__} (Interface Pack {PACK_VERSION}, Python {python})")
    return ExitCode.OK
