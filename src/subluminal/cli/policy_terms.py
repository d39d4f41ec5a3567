"""Options of the policy commands that say what a policy must be: its language and its signature."""

import os

from subluminal.cli.frame import Args, Parser
from subluminal.config.places import places
from subluminal.contracts.vocabulary import Dialect
from subluminal.errors import UsageError
from subluminal.operator.policies import terms_in
from subluminal.policy.terms import Terms

_AUTO = "auto"


def add_signature(parser: Parser) -> None:
    """Adds the options about the signature of a bundle of Agent-SPM."""
    parser.add_argument(
        "--hmac-key-file",
        metavar="KEY",
        help="the policy must be signed with this key; default `[policy] hmac_key_file`",
    )
    parser.add_argument(
        "--legacy-signature",
        action="store_true",
        help="accept Agent-SPM's own signatures too, which do not protect the rules",
    )


def add_dialect(parser: Parser) -> None:
    """Adds the option about the language of a policy."""
    parser.add_argument(
        "--dialect",
        choices=[_AUTO, *(dialect.value for dialect in Dialect)],
        default=_AUTO,
        help="language of the policy; default auto: found out from its members",
    )


def terms_of(args: Args) -> Terms:
    """Returns what the command line and the settings demand of a policy."""
    dialect = getattr(args, "dialect", _AUTO)
    terms = terms_in(
        places(os.environ),
        args.hmac_key_file,
        legacy=args.legacy_signature,
        dialect=None if dialect == _AUTO else Dialect(dialect),
    )
    if args.legacy_signature and terms.key is None:
        raise UsageError(
            "`--legacy-signature` needs a key", hint="name its file with `--hmac-key-file`"
        )
    return terms
