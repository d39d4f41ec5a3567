"""`sub secrets get NAME`: what is known of a secret. Its value is shown only to a person."""

import os

from subluminal.cli.asking import is_at_terminal
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.config.agent_environment import refuse_inside_agent
from subluminal.contracts.vocabulary import SecretSource
from subluminal.errors import ExitCode, SubluminalError
from subluminal.operator.secrets import HomeSecrets, SecretRow, open_secrets, reveal, secret_row

EXAMPLE = """sub secrets get github_token
sub secrets get github_token --reveal"""


def add_arguments(parser: Parser) -> None:
    add_name(parser)
    parser.add_argument(
        "--reveal",
        action="store_true",
        help="print the value after asking; only at a terminal, and not for agents",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_name(parser: Parser, sources: tuple[SecretSource, ...] = tuple(SecretSource)) -> None:
    """Adds the arguments that name one secret."""
    parser.add_argument("name", metavar="NAME", help="the secret's name (`secret_ref`)")
    parser.add_argument(
        "--source",
        choices=[source.value for source in sources],
        help="where it is; needed only if several sources have the name",
    )


def run(args: Args, out: Output) -> int:
    if args.reveal:
        refuse_inside_agent(os.environ, "sub secrets get --reveal")
    home = open_secrets(os.environ)
    row = secret_row(home, args.name, args.source)
    if args.reveal:
        return _reveal(home, row, out)
    if args.json:
        out.json(row._asdict())
    else:
        _print(row, out)
    return ExitCode.OK


def _reveal(home: HomeSecrets, row: SecretRow, out: Output) -> int:
    if not is_at_terminal():
        raise SubluminalError(
            "a value is revealed only at a terminal", hint="servers get it through bindings"
        )
    out.talk(f"This prints the value of `{shown(row.name)}`. Type its name to continue.")
    if input().strip() != row.name:
        raise SubluminalError("not revealed: the name was not repeated")
    out.line(reveal(home, row.name, row.source))
    return ExitCode.OK


def _print(row: SecretRow, out: Output) -> None:
    out.line(f"{shown(row.name)}")
    out.line(f"  source       {row.source} ({row.protection})")
    out.line(f"  used by      {shown(', '.join(row.servers)) or 'no server'}")
    out.line(f"  added        {row.added_at or 'not by `sub secrets add`'}")
    out.line(f"  changed      {row.changed_at or '-'}")
    out.line(f"  last worked  {row.last_ok or 'never'}")
    if row.last_failed:
        out.line(f"  last failed  {row.last_failed}")
