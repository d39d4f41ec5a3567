"""`sub secrets add NAME`: stores a value, from a prompt or from stdin, never from argv."""

import getpass
import sys

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.contracts.vocabulary import SecretSource
from subluminal.core.records.redaction.forms import MIN_ALONE_CHARS, MIN_ANYWHERE_CHARS
from subluminal.errors import ExitCode, SecretUnavailable, SubluminalError, UsageError
from subluminal.operator.secrets_shared import STORES, Home, is_at_terminal, open_home, timestamp
from subluminal.secrets import keychain
from subluminal.secrets.resolving import refuse_value
from subluminal.secrets.usage import record_change

EXAMPLE = """sub secrets add github_token
pass show github | sub secrets add github_token --source keychain"""

MAX_NAME_CHARS = 128


def add_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="a name for bindings to refer to")
    # Taken so that it can be refused without being repeated on the screen.
    parser.add_argument("value", nargs="*", metavar="", help="(values are never given here)")
    parser.add_argument(
        "--source",
        choices=[source.value for source in STORES],
        help="where to put it; default: where a binding expects it, else the keychain, else a file",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    if args.value:
        raise UsageError(
            "a value is never taken from the command line: it would stay in the shell's history",
            hint=f"type it at the prompt of `sub secrets add {args.name}`, or pipe it in",
        )
    _refuse_name(args.name)
    home = open_home()
    source = SecretSource(args.source) if args.source else _fitting_source(home, args.name)
    value = _read_value(args.name)
    refuse_value(value)
    protection = store_value(home, source, args.name, value)
    if args.json:
        out.json({"name": args.name, "source": source.value, "protection": protection})
    else:
        out.talk(f"stored `{args.name}` ({protection})")
        _say_what_is_left(home, source, args.name, out)
    if source is SecretSource.FILE and protection == "plain":
        out.warning(
            "the file store is not encrypted: it is protected by its mode (0600) only",
            "set `passphrase_file` in `[secrets]`, or install `subluminal[keychain]`",
        )
    _warn_short(args.name, value, out)
    return ExitCode.OK


def store_value(home: Home, source: SecretSource, name: str, value: str) -> str:
    """Puts a value into a source and returns how it is protected there."""
    if source is SecretSource.FILE:
        protection: str = home.store.write(name, value, timestamp())
    else:
        keychain.write(name, value, home.settings.secrets.keychain_wait_ms)
        protection = "keychain"
    record_change(home.places, source, name, timestamp())
    return protection


def _refuse_name(name: str) -> None:
    plain = name.isascii() and name.isprintable() and " " not in name
    if not plain or not 0 < len(name) <= MAX_NAME_CHARS:
        raise UsageError(
            f"`{name}` cannot be a secret's name",
            hint="letters, digits and punctuation, no spaces",
        )


def _fitting_source(home: Home, name: str) -> SecretSource:
    for source in STORES:
        if name in home.names(source):
            return source
    try:
        keychain.backend(home.settings.secrets.keychain_wait_ms)
    except SecretUnavailable:
        return SecretSource.FILE
    return SecretSource.KEYCHAIN


def _read_value(name: str) -> str:
    if not is_at_terminal():
        data = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
        return data.removesuffix("\n").removesuffix("\r")
    value = getpass.getpass(f"value of `{name}`: ")
    if getpass.getpass("once more: ") != value:
        raise SubluminalError("the two values differ; nothing was stored")
    return value


def _say_what_is_left(home: Home, source: SecretSource, name: str, out: Output) -> None:
    users = [s for s, b in home.bindings() if (b.source, b.secret_ref) == (source, name)]
    if users:
        out.talk(f"used by {', '.join(f'`{user}`' for user in users)} from its next start on")
        return
    out.talk(f"no server uses it yet; bind it in `{home.places.settings}`:")
    out.talk('\n  [[servers.NAME.secret_bindings]]\n  inject_as = "VARIABLE"')
    out.talk(f'  secret_ref = "{name}"\n  source = "{source.value}"')


def _warn_short(name: str, value: str, out: Output) -> None:
    if len(value) < MIN_ALONE_CHARS:
        out.warning(f"`{name}` is shorter than {MIN_ALONE_CHARS} characters: it cannot be masked")
    elif len(value) < MIN_ANYWHERE_CHARS:
        out.warning(
            f"`{name}` is shorter than {MIN_ANYWHERE_CHARS} characters: it is masked only where "
            "it stands alone"
        )
