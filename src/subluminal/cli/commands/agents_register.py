"""`sub agents register ID`: registers an agent, or changes its registration. Agents may not run it
(local-is-not-trusted)."""

import os

from subluminal.cli.asking import need_person
from subluminal.cli.files import read_file
from subluminal.cli.frame import Args, Parser, sentence
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.contracts.agents import Registration
from subluminal.contracts.vocabulary import TrustLevel
from subluminal.errors import ExitCode, UsageError
from subluminal.operator.agent_issuers import MAX_JWKS_BYTES, IssuerGiven
from subluminal.operator.agents import Given, agent_row, register

EXAMPLE = """sub agents register fixer --type pr_agent --trust verified --role deployer
sub agents register fixer --issuer https://token.actions.githubusercontent.com --jwks keys.json \\
    --subject 'repo:acme/shop:ref:refs/heads/main' --claim /repository_id=1234"""

LEVELS = [level.value for level in TrustLevel]


def add_arguments(parser: Parser) -> None:
    parser.add_argument("id", type=sentence, metavar="ID", help="as SUB_AGENT_ID names the agent")
    parser.add_argument("--name", type=sentence, metavar="TEXT", help="name for people")
    parser.add_argument("--owner", type=sentence, metavar="WHO", help="person or team; default you")
    parser.add_argument(
        "--env", type=sentence, metavar="NAME", help="environment of the agent; default dev"
    )
    parser.add_argument(
        "--type", type=sentence, metavar="TYPE", help="such as ide_agent, pr_agent, chat_agent"
    )
    parser.add_argument(
        "--trust", choices=LEVELS, help="trust in the agent with a proof; default basic"
    )
    parser.add_argument(
        "--unattested", choices=LEVELS, help="highest trust without a proof; default basic"
    )
    parser.add_argument(
        "--role", type=sentence, action="append", metavar="R", help="a role; may be repeated"
    )
    parser.add_argument(
        "--capability", type=sentence, action="append", metavar="C", help="may be repeated"
    )
    parser.add_argument(
        "--max-delegation-depth",
        type=int,
        metavar="N",
        help="depth of delegation above which trust is lowered",
    )
    _add_issuer(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_issuer(parser: Parser) -> None:
    parser.add_argument(
        "--issuer", type=sentence, metavar="I", help="exact `iss` of tokens that prove the agent"
    )
    parser.add_argument("--jwks", metavar="FILE", help="the issuer's public keys; - for stdin")
    parser.add_argument(
        "--subject", type=sentence, metavar="GLOB", help="what `sub` of such a token must match"
    )
    parser.add_argument(
        "--audience", type=sentence, metavar="A", help="what `aud` must have; default subluminal"
    )
    parser.add_argument(
        "--claim",
        type=sentence,
        action="append",
        default=[],
        metavar="/POINTER=VALUE",
        help="a claim that such a token must have; may be repeated",
    )
    parser.add_argument(
        "--remove-issuer",
        type=sentence,
        action="append",
        default=[],
        metavar="I",
        help="an issuer whose tokens shall not prove the agent any more",
    )


def run(args: Args, out: Output) -> int:
    given = _given(args)
    where = places(os.environ)
    need_person("sub agents register", where)
    done = register(where, args.id, given)
    if not done.is_recorded:
        out.warning(
            "the agent is registered, but that could not be recorded", f"check `{where.journal}`"
        )
    if args.json:
        out.json(agent_row(done.registration))
        return ExitCode.OK
    word = "registered" if done.is_new else "changed"
    out.line(shown(f"{word}: {told(done.registration)}"))
    return ExitCode.OK


def told(registration: Registration) -> str:
    """Returns what an agent is, in one line."""
    kind = f" ({registration.agent_type})" if registration.agent_type else ""
    trust, unattested = registration.trust_level.value, registration.unattested.value
    roles = f", roles {', '.join(registration.roles)}" if registration.roles else ""
    return (
        f"agent `{registration.agent_id}`{kind}, {trust} with a proof,"
        f" at most {unattested} without{roles}"
    )


def _given(args: Args) -> Given:
    if args.max_delegation_depth is not None and args.max_delegation_depth < 0:
        raise UsageError("`--max-delegation-depth` must not be negative")
    return Given(
        name=args.name,
        owner=args.owner,
        environment=args.env,
        agent_type=args.type,
        trust_level=args.trust and TrustLevel(args.trust),
        unattested=args.unattested and TrustLevel(args.unattested),
        roles=args.role,
        capabilities=args.capability,
        max_delegation_depth=args.max_delegation_depth,
        issuer=_issuer(args),
        removed_issuers=args.remove_issuer,
    )


def _issuer(args: Args) -> IssuerGiven | None:
    if args.issuer is None:
        if args.jwks or args.subject or args.audience or args.claim:
            raise UsageError("`--jwks`, `--subject`, `--audience` and `--claim` need `--issuer`")
        return None
    return IssuerGiven(
        issuer=args.issuer,
        subject=args.subject,
        audience=args.audience,
        claims=args.claim,
        jwks=None if args.jwks is None else read_file(args.jwks, MAX_JWKS_BYTES),
        jwks_file=args.jwks or "",
    )
