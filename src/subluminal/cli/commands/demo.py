"""`sub demo`: the whole loop in a minute, with nothing else installed."""

from importlib.util import find_spec

from subluminal.cli.demo.stage import Stage, temporary_home
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.errors import ExitCode

EXAMPLE = "sub demo"

_OPENING = """\
A scripted agent works with a small MCP server. Between them stands a shim with a
policy, which allows, throttles, hints, blocks, and stops a loop. `agent` is what
the agent does, `tail` is the live stream beside it.
"""
_NEXT = """\
Where to go from here:
  sub import claude      put shims before the MCP servers of a client (also: codex)
  sub run -- claude      run an agent as one run
  sub tail               watch it
  sub query, sub show    search it, look at one call or run
  sub hints              whether hints helped; `sub promote` where one was too strict
  sub policy explain     ask what a policy would say, and why
  sub doctor             whether everything here would work"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--keep", action="store_true", help="keep the demo's home, and say where")


def run(args: Args, out: Output) -> int:
    out.line(_OPENING)
    with temporary_home(keep=args.keep) as home:
        stage = Stage(out, home)
        try:
            code = stage.play()
            out.line()
            if find_spec("apsw") is None:
                out.talk("`sub query` needs `subluminal[daemon]`; the journals have it all already")
            else:
                stage.look_back("query", "runs")
                stage.look_back("query", "decision!=ALLOW", "--order", "oldest")
                stage.look_back("hints")
        finally:
            stage.stop_daemon()
        out.line(_NEXT)
        if args.keep:
            out.line(f"\nthe demo's home is `{home}`; look at it with SUB_HOME={home}")
    return ExitCode.OK if code == 0 else ExitCode.NO
