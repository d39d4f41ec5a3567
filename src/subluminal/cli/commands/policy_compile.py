"""`sub policy compile FILE`: prints the snapshot as JSON with its policy_hash (Pack 2.6)."""

from subluminal.cli.files import load_policy, write_output
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.errors import ExitCode

EXAMPLE = """sub policy compile policy.yaml
sub policy compile policy.yaml -o policy.snapshot.json"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="a bundle; `-` reads stdin")
    parser.add_argument(
        "-o", "--output", metavar="PATH", help="write to this file instead of stdout"
    )
    parser.add_argument(
        "--json", action="store_true", help="accepted and ignored: the output is always JSON"
    )


def run(args: Args, out: Output) -> int:
    text = load_policy(args.file).snapshot.to_json() + b"\n"
    if args.output is None:
        out.data(text)
    else:
        write_output(args.output, [text], 0o644)
    return ExitCode.OK
