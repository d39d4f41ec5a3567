"""`sub passphrase`: a passphrase in front of approve, revive, promote and the like (local-is-not-trusted)."""

import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.config import env
from subluminal.config.places import places
from subluminal.core.controls.passphrase import is_set, remove_passphrase, set_passphrase
from subluminal.errors import ExitCode, SubluminalError, UsageError
from subluminal.operator.person import need_person, read_passphrase

EXAMPLE = """sub passphrase set
sub passphrase remove
sub passphrase"""

_WHAT = "sub passphrase"


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "do", nargs="?", choices=["set", "remove"], help="without it: whether there is one"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    where = places(os.environ)
    if args.do is None:
        return _tell(args, out, is_set(where.state))
    if args.do == "remove" and not is_set(where.state):
        raise SubluminalError("this home has no passphrase")
    if args.do == "set" and is_set(where.state) and os.environ.get(env.SUB_PASSPHRASE_FD.name):
        raise UsageError("one descriptor cannot give two passphrases", hint="remove the old first")
    need_person(_WHAT, where)
    if args.do == "remove":
        remove_passphrase(where.state)
    else:
        set_passphrase(where.state, _new_passphrase())
    return _tell(args, out, is_set(where.state))


def _tell(args: Args, out: Output, asked: bool) -> int:
    if args.json:
        out.json({"passphrase": asked})
    elif asked:
        out.line(
            "approve, deny, revive, promote and `policy accept` ask for this home's passphrase"
        )
    else:
        out.line("this home asks for no passphrase")
    return ExitCode.OK


def _new_passphrase() -> str:
    typed = read_passphrase("new passphrase: ", _WHAT)
    if not typed.strip():
        raise UsageError("an empty passphrase would keep nobody out")
    is_typed = not os.environ.get(env.SUB_PASSPHRASE_FD.name)
    if is_typed and read_passphrase("once more: ", _WHAT) != typed:
        raise UsageError("these are two different passphrases")
    return typed
