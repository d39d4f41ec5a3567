"""`sub secrets rename OLD NEW`: another name for the same value; bindings are told, not edited."""

from subluminal.cli.commands.secrets_remove import refuse_unwritable
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.contracts.vocabulary import SecretSource
from subluminal.errors import ExitCode, SubluminalError
from subluminal.operator.secrets_shared import (
    STORES,
    Home,
    add_name,
    find_source,
    open_home,
    row_of,
)
from subluminal.secrets import keychain
from subluminal.secrets.usage import rename_known

EXAMPLE = "sub secrets rename github_token github_token_work"


def add_arguments(parser: Parser) -> None:
    add_name(parser, sources=STORES)
    parser.add_argument("new_name", metavar="NEW", help="the name it gets")


def run(args: Args, out: Output) -> int:
    home = open_home()
    source = find_source(home, args.name, args.source)
    refuse_unwritable(source, args.name)
    servers = row_of(home, source, args.name).servers
    if source is SecretSource.FILE:
        if args.name not in home.store.contents().secrets:
            raise SubluminalError(f"no secret `{args.name}` in the file store")
        home.store.rename(args.name, args.new_name)
    else:
        _rename_in_keychain(home, args.name, args.new_name)
    rename_known(home.places, source, args.name, args.new_name)
    out.talk(f"renamed `{args.name}` to `{args.new_name}`")
    if servers:
        told = ", ".join(f"`{server}`" for server in servers)
        out.warning(
            f"{told} still asks for `{args.name}`",
            f'write `secret_ref = "{args.new_name}"` in `{home.places.settings}`',
        )
    return ExitCode.OK


def _rename_in_keychain(home: Home, old: str, new: str) -> None:
    wait_ms = home.settings.secrets.keychain_wait_ms
    value = keychain.read(old, wait_ms)
    if value is None:
        raise SubluminalError(f"no secret `{old}` in the keychain")
    if keychain.read(new, wait_ms) is not None:
        raise SubluminalError(f"there is a secret `{new}` already")
    keychain.write(new, value, wait_ms)
    keychain.delete(old, wait_ms)
