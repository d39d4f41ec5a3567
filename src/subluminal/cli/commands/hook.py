"""`sub hook`, for the overview, the reference and completion only.

When the command runs, `cli.main` calls the adapter before a parser is loaded (fast-start).
"""

from subluminal.adapters.agent_hooks import entry
from subluminal.cli.frame import Args, Parser
from subluminal.cli.main import configured_servers, open_host
from subluminal.cli.output import Output

EXAMPLE = "sub hook claude < event.json"


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "client",
        choices=entry.CLIENTS,
        metavar="CLIENT",
        help=f"the client whose hook this is: {', '.join(entry.CLIENTS)}",
    )
    parser.add_argument(
        "event",
        nargs="?",
        metavar="EVENT",
        help="the event's name, for clients whose JSON does not contain it",
    )
    parser.add_argument(
        "--policy", metavar="FILE", help="use this instead of the repository's policy"
    )
    parser.add_argument("--home", metavar="DIR", help="use this instead of SUB_HOME")
    parser.add_argument(
        "--on-error",
        choices=entry.ON_ERROR,
        default="auto",
        help="what happens to a call that cannot be decided; `auto` blocks it if there is a policy",
    )


def run(args: Args, _out: Output) -> int:
    words = [args.client, *([args.event] if args.event else []), "--on-error", args.on_error]
    for name in ("policy", "home"):
        if getattr(args, name):
            words += [f"--{name}", getattr(args, name)]
    return entry.run(words, entry.Tools(open_host, configured_servers))
