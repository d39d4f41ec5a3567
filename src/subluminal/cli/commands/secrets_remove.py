"""`sub secrets remove NAME`: deletes a value."""

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.contracts.vocabulary import SecretSource
from subluminal.errors import ExitCode, SubluminalError, UsageError
from subluminal.operator.secrets_shared import (
    STORES,
    Home,
    add_name,
    find_source,
    open_home,
    row_of,
)
from subluminal.secrets import keychain
from subluminal.secrets.usage import forget

EXAMPLE = """sub secrets remove github_token
sub secrets remove github_token --source file --force"""


def add_arguments(parser: Parser) -> None:
    add_name(parser, sources=STORES)
    parser.add_argument("--force", action="store_true", help="even if a server uses it")


def run(args: Args, out: Output) -> int:
    home = open_home()
    source = find_source(home, args.name, args.source)
    refuse_unwritable(source, args.name)
    servers = row_of(home, source, args.name).servers
    if servers and not args.force:
        told = ", ".join(f"`{server}`" for server in servers)
        raise SubluminalError(
            f"`{args.name}` is used by {told}, which would not start any more",
            hint="remove the binding first, or say `--force`",
        )
    remove_value(home, source, args.name)
    out.talk(f"removed `{args.name}` from `{source.value}`")
    return ExitCode.OK


def refuse_unwritable(source: SecretSource, name: str) -> None:
    """Raises where a secret is a variable: it is not ours to change."""
    if source not in STORES:
        raise UsageError(
            f"`{name}` is a variable of the client's environment",
            hint="change it where the client starts, and the binding in `config.toml`",
        )


def remove_value(home: Home, source: SecretSource, name: str) -> None:
    """Deletes a value that is there, and what was known of it."""
    if source is SecretSource.FILE:
        if name not in home.store.contents().secrets:
            raise SubluminalError(f"no secret `{name}` in the file store")
        home.store.delete(name)
    else:
        wait_ms = home.settings.secrets.keychain_wait_ms
        if keychain.read(name, wait_ms) is None:
            raise SubluminalError(f"no secret `{name}` in the keychain")
        keychain.delete(name, wait_ms)
    forget(home.places, source, name)
