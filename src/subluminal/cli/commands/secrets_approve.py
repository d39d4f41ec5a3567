"""`sub secrets approve NAME -- CMD…`: the command that gets a server's stored secrets."""

import argparse
import os
import shlex

from subluminal.cli.asking import need_person
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.cli.screens.imports import warn_trusts
from subluminal.config.places import places
from subluminal.errors import ExitCode, UsageError
from subluminal.importer.clients.description import Scene
from subluminal.operator.secrets_approval import Approved, approve_command, command_missing

EXAMPLE = """sub secrets approve github -- npx -y @modelcontextprotocol/server-github
sub secrets approve --env JIRA_URL=https://jira.example.com jira -- uvx mcp-atlassian"""

_USAGE = "sub secrets approve [--env NAME[=VALUE]]… [--json] NAME -- COMMAND [ARG…]"


def add_arguments(parser: Parser) -> None:
    parser.usage = _USAGE
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="a variable that the command gets with this value; without a value: from the client, "
        "even if it is withheld otherwise",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("name", metavar="NAME", help="the server's name")
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="COMMAND",
        help="the server's command, as in the client's configuration",
    )


def run(args: Args, out: Output) -> int:
    where, scene = places(os.environ), Scene(os.environ, os.getcwd())
    # Whether argparse leaves the `--` depends on the version of Python.
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if command and command[0].startswith("-"):
        raise UsageError(f"`{command[0]}` must stand before NAME", hint=f"write `{_USAGE}`")
    if not command or not command[0]:
        raise command_missing(scene, args.name)
    need_person("sub secrets approve", where)
    done = approve_command(where, scene, args.name, command, args.env)
    if args.json:
        approval = done.approval
        told = {"server_name": args.name, "command": approval.command, "env": dict(approval.env)}
        out.json({**told, "pass_env": list(approval.pass_env), "variables": done.variables})
    else:
        _print(args.name, done, out)
    return ExitCode.OK


def _print(name: str, done: Approved, out: Output) -> None:
    line = shown(shlex.join(done.approval.command))
    out.line(f"approved: `{shown(name)}` gets its stored secrets only as `{line}`")
    if done.replaced:
        out.talk(f"Before, it was `{shown(shlex.join(done.replaced))}`.")
    if done.variables:
        told = ", ".join(f"`{shown(variable)}`" for variable in done.variables)
        out.talk(f"It gets {told} at its next start.")
    else:
        out.talk("No stored secret is bound to it yet.")
    if done.not_passed:
        told = ", ".join(f"`{shown(variable)}`" for variable in done.not_passed)
        out.talk(f"It does not get {told} from the client; `--env NAME` passes one on.")
    if done.trusts:
        warn_trusts(name, done.trusts, out)
