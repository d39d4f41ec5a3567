"""`sub secrets rename NAME NEW`: renames a secret. Bindings are not edited, only named."""

import os

from subluminal.cli.commands.secrets_get import add_name
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.errors import ExitCode
from subluminal.operator.secrets import STORES, open_secrets, rename_secret

EXAMPLE = "sub secrets rename github_token github_token_work"


def add_arguments(parser: Parser) -> None:
    add_name(parser, STORES)
    parser.add_argument("new_name", metavar="NEW", help="the new name")


def run(args: Args, out: Output) -> int:
    home = open_secrets(os.environ)
    servers = rename_secret(home, args.name, args.new_name, args.source)
    out.talk(f"Renamed `{args.name}` to `{args.new_name}`.")
    if servers:
        told = ", ".join(f"`{server}`" for server in servers)
        out.warning(
            f"bindings still ask for `{args.name}`: {told}",
            f'write `secret_ref = "{args.new_name}"` in `{home.places.settings}`',
        )
    return ExitCode.OK
