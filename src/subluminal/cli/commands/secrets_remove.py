"""`sub secrets remove NAME`: deletes a value."""

import os

from subluminal.cli.commands.secrets_get import add_name
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.errors import ExitCode
from subluminal.operator.secrets import STORES, open_secrets, remove_secret

EXAMPLE = """sub secrets remove github_token
sub secrets remove github_token --source file --force"""


def add_arguments(parser: Parser) -> None:
    add_name(parser, STORES)
    parser.add_argument("--force", action="store_true", help="remove it even if a server uses it")


def run(args: Args, out: Output) -> int:
    home = open_secrets(os.environ)
    source = remove_secret(home, args.name, args.source, force=args.force)
    out.talk(f"Removed `{args.name}` from `{source.value}`.")
    return ExitCode.OK
