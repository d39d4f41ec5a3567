"""`sub passphrase`: a passphrase for commands that only a person may run (local-is-not-trusted)."""

import os

from subluminal.cli.asking import need_person, new_passphrase
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.config import env
from subluminal.config.places import places
from subluminal.core.controls.passphrase import is_set, remove_passphrase, set_passphrase
from subluminal.errors import ExitCode, SubluminalError, UsageError

EXAMPLE = """sub passphrase set
sub passphrase remove
sub passphrase"""

_WHAT = "sub passphrase"


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "do",
        nargs="?",
        choices=["set", "remove"],
        help="set or remove the passphrase; without it, show whether there is one",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    where = places(os.environ)
    if args.do is None:
        return _tell(args, out, is_set(where.state))
    if args.do == "remove" and not is_set(where.state):
        raise SubluminalError("this home has no passphrase")
    if args.do == "set" and is_set(where.state) and os.environ.get(env.SUB_PASSPHRASE_FD.name):
        raise UsageError(
            "one descriptor cannot give two passphrases",
            hint="remove the old passphrase first with `sub passphrase remove`",
        )
    need_person(_WHAT, where)
    if args.do == "remove":
        remove_passphrase(where.state)
    else:
        set_passphrase(where.state, new_passphrase(_WHAT))
    return _tell(args, out, is_set(where.state))


def _tell(args: Args, out: Output, asked: bool) -> int:
    if args.json:
        out.json({"passphrase": asked})
    elif asked:
        out.line(
            "approve, deny, revive, promote, `policy accept` and `policy init` ask for this home's"
            " passphrase"
        )
    else:
        out.line("this home has no passphrase")
    return ExitCode.OK
