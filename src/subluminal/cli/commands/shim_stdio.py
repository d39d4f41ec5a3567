"""`sub shim stdio`, for the overview, the reference and completion.

The command itself does not come by here: `cli.main` leaves for the adapter before any parser is
loaded (fast-start).
"""

from subluminal.adapters.mcp_stdio import entry
from subluminal.cli.frame import Args, Parser
from subluminal.cli.main import open_host
from subluminal.cli.output import Output

EXAMPLE = "sub shim stdio --server git -- mcp-server-git --repository ."


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--server", required=True, metavar="NAME", help="as the client calls it")
    parser.add_argument("--policy", metavar="FILE", help="in place of the repository's policy")
    parser.add_argument("--home", metavar="DIR", help="in place of SUB_HOME")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="the server, after `--`")


def run(args: Args, _out: Output) -> int:
    words = ["stdio", "--server", args.server]
    for name in ("policy", "home"):
        if getattr(args, name):
            words += [f"--{name}", getattr(args, name)]
    return entry.run([*words, "--", *args.command], open_host)
