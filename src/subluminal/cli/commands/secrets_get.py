"""`sub secrets get NAME`: what is known of a secret; its value only to a person who asks twice."""

import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.config.agent_environment import refuse_inside_agent
from subluminal.contracts.vocabulary import SecretSource
from subluminal.errors import ExitCode, SubluminalError
from subluminal.operator.secrets_shared import (
    Home,
    Row,
    add_name,
    find_source,
    is_at_terminal,
    open_home,
    row_of,
)
from subluminal.secrets.resolving import read_secret

EXAMPLE = """sub secrets get github_token
sub secrets get github_token --reveal"""


def add_arguments(parser: Parser) -> None:
    add_name(parser)
    parser.add_argument(
        "--reveal",
        action="store_true",
        help="print the value, after asking; on a terminal, and not for agents",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    if args.reveal:
        refuse_inside_agent(os.environ, "sub secrets get --reveal")
    home = open_home()
    source = find_source(home, args.name, args.source)
    if args.name not in home.names(source):
        raise SubluminalError(f"no secret `{args.name}` in `{source.value}`")
    if args.reveal:
        return _reveal(home, source, args.name, out)
    row = row_of(home, source, args.name)
    if args.json:
        out.json(row._asdict())
    else:
        _print(row, out)
    return ExitCode.OK


def _reveal(home: Home, source: SecretSource, name: str, out: Output) -> int:
    if not is_at_terminal():
        raise SubluminalError(
            "a value is revealed on a terminal only", hint="servers get it through bindings"
        )
    out.talk(f"this prints the value of `{shown(name)}` on the screen; type the name to go on")
    if input().strip() != name:
        raise SubluminalError("not revealed: the name was not repeated")
    value = read_secret(source, name, home.sources)
    if value is None:
        raise SubluminalError(f"`{name}` is bound, but `{source.value}` has no value for it")
    out.line(value)
    return ExitCode.OK


def _print(row: Row, out: Output) -> None:
    out.line(f"{shown(row.name)}")
    out.line(f"  source       {row.source} ({row.protection})")
    out.line(f"  used by      {shown(', '.join(row.servers)) or 'no server'}")
    out.line(f"  added        {row.added_at or 'not by `sub secrets add`'}")
    out.line(f"  changed      {row.changed_at or '-'}")
    out.line(f"  last worked  {row.last_ok or 'never yet'}")
    if row.last_failed:
        out.line(f"  last failed  {row.last_failed}")
