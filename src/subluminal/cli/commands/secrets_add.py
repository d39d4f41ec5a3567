"""`sub secrets add NAME`: stores a value, from a prompt or from stdin, never from argv."""

import os
import sys

from subluminal.cli.asking import is_at_terminal, read_hidden
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.contracts.vocabulary import SecretSource
from subluminal.core.records.redaction.forms import MIN_ALONE_CHARS, MIN_ANYWHERE_CHARS
from subluminal.errors import ExitCode, SubluminalError, UsageError
from subluminal.operator.secrets import (
    PLAIN,
    STORES,
    HomeSecrets,
    check_name,
    open_secrets,
    source_for,
    store_secret,
)

EXAMPLE = """sub secrets add github_token
pass show github | sub secrets add github_token --source keychain"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="a name that bindings refer to")
    # Accepted so that it can be refused without being repeated on the screen.
    parser.add_argument("value", nargs="*", metavar="", help="(never give values here)")
    parser.add_argument(
        "--source",
        choices=[source.value for source in STORES],
        help="where to store it; default: where a binding expects it, else the keychain, else a "
        "file",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    if args.value:
        raise UsageError(
            "a value is never taken from the command line, where shells keep it in their history",
            hint=f"type it at the prompt of `sub secrets add {args.name}`, or pipe it in",
        )
    check_name(args.name)
    home = open_secrets(os.environ)
    source = SecretSource(args.source) if args.source else source_for(home, args.name)
    value = _read_value(args.name)
    protection = store_secret(home, source, args.name, value)
    if args.json:
        out.json({"name": args.name, "source": source.value, "protection": protection})
    else:
        out.talk(f"Stored `{args.name}` ({protection}).")
        _print_use(home, source, args.name, out)
    if source is SecretSource.FILE and protection == PLAIN:
        out.warning(
            "the file store is not encrypted; only its mode (0600) protects it",
            "set `passphrase_file` in `[secrets]`, or install `subluminal[keychain]`",
        )
    _warn_short(args.name, value, out)
    return ExitCode.OK


def _read_value(name: str) -> str:
    if not is_at_terminal():
        data = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
        return data.removesuffix("\n").removesuffix("\r")
    value = read_hidden(f"value of `{name}`: ")
    if read_hidden("repeat it: ") != value:
        raise SubluminalError("the two values differ; nothing was stored")
    return value


def _print_use(home: HomeSecrets, source: SecretSource, name: str, out: Output) -> None:
    """Prints which servers use the secret, or how to bind it."""
    users = home.servers_using(source, name)
    if users:
        told = ", ".join(f"`{user}`" for user in users)
        out.talk(f"Each of these servers gets it at its next start: {told}.")
        return
    out.talk(f"No server uses it yet. Bind it in `{home.places.settings}`:")
    out.talk('\n  [[servers.NAME.secret_bindings]]\n  inject_as = "VARIABLE"')
    out.talk(f'  secret_ref = "{name}"\n  source = "{source.value}"\n')
    out.talk("Then run `sub secrets approve NAME -- COMMAND…` with the server's command.")


def _warn_short(name: str, value: str, out: Output) -> None:
    if len(value) < MIN_ALONE_CHARS:
        out.warning(
            f"`{name}` has fewer than {MIN_ALONE_CHARS} characters and cannot be masked in records"
        )
    elif len(value) < MIN_ANYWHERE_CHARS:
        out.warning(
            f"`{name}` has fewer than {MIN_ANYWHERE_CHARS} characters and is masked only where it "
            "stands alone"
        )
