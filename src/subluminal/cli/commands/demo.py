"""`sub demo`: shows everything at work in one minute, with nothing else installed."""

from importlib.util import find_spec

from subluminal.cli.demo.stage import Stage, temporary_home
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.errors import ExitCode

EXAMPLE = "sub demo"

_OPENING = """\
A scripted agent works with a small MCP server. Between them is a shim with a policy
that allows, throttles, hints, blocks, and stops a loop. Lines with `agent` are what
the agent does; lines with `tail` are the live stream.
"""
_NEXT = """\
Where to go from here:
  sub import claude      put shims in front of a client's MCP servers (also: codex, gemini, …)
  sub run -- claude      run an agent and record it as one run
  sub tail               watch its calls live
  sub query, sub show    search calls and runs, show one in full
  sub hints              see whether hints helped; `sub promote` one that was too strict
  sub policy explain     see what a policy decides, and why
  sub doctor             check that everything here works"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--keep", action="store_true", help="keep the demo's home and print its path"
    )


def run(args: Args, out: Output) -> int:
    out.line(_OPENING)
    with temporary_home(keep=args.keep) as home:
        stage = Stage(out, home)
        try:
            code = stage.play()
            out.line()
            if find_spec("apsw") is None:
                out.talk(
                    "`sub query` needs `subluminal[daemon]`. The journals have recorded everything."
                )
            else:
                stage.look_back("query", "runs")
                stage.look_back("query", "decision!=ALLOW")
                stage.look_back("hints")
        finally:
            stage.stop_daemon()
        out.line(_NEXT)
        if args.keep:
            out.line(f"\nThe demo's home is `{home}`. Set SUB_HOME={home} to look at it.")
    return ExitCode.OK if code == 0 else ExitCode.NO
