"""`sub shim stdio`, for the overview, the reference and completion only.

When the command runs, `cli.main` calls the adapter before a parser is loaded (fast-start).
"""

from subluminal.adapters.mcp_stdio import entry
from subluminal.cli.frame import Args, Parser
from subluminal.cli.main import open_host
from subluminal.cli.output import Output

EXAMPLE = "sub shim stdio --server git -- mcp-server-git --repository ."


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--server",
        required=True,
        metavar="NAME",
        help="the server's name in the client's configuration",
    )
    parser.add_argument(
        "--policy", metavar="FILE", help="use this instead of the repository's policy"
    )
    parser.add_argument("--home", metavar="DIR", help="use this instead of SUB_HOME")
    parser.add_argument(
        "command", nargs="+", metavar="COMMAND", help="the server's command, after `--`"
    )


def run(args: Args, _out: Output) -> int:
    words = ["stdio", "--server", args.server]
    for name in ("policy", "home"):
        if getattr(args, name):
            words += [f"--{name}", getattr(args, name)]
    return entry.run([*words, "--", *args.command], open_host)
