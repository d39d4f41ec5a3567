"""`sub agents show ID`: an agent, what a token proves about it, and how far it is trusted."""

import os

from subluminal.cli.commands.agents_register import told
from subluminal.cli.files import read_file
from subluminal.cli.frame import Args, Parser, sentence
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.contracts.agents import Issuer
from subluminal.errors import ExitCode, UsageError
from subluminal.operator.agents import Shown, show
from subluminal.timestamps import parse_rfc3339
from subluminal.trust.tokens import MAX_TOKEN_CHARS

EXAMPLE = """sub agents show fixer
sub agents show fixer --token-file token.jwt --env prod --depth 1 --json"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("id", type=sentence, metavar="ID", help="an agent, registered or not")
    add_token(parser, required=False)
    parser.add_argument(
        "--env", type=sentence, metavar="NAME", help="environment; default the agent's own"
    )
    parser.add_argument(
        "--depth", type=int, default=0, metavar="N", help="how often the work was handed on"
    )
    parser.add_argument("--hour", type=int, metavar="H", help="hour of the day, 0 to 23")
    parser.add_argument(
        "--denials", type=int, default=0, metavar="N", help="calls in a row that were refused"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_token(parser: Parser, *, required: bool) -> None:
    """Adds the arguments that `sub agents show` and `sub agents verify` share."""
    parser.add_argument(
        "--token-file", required=required, metavar="F", help="file with a token; - for stdin"
    )
    parser.add_argument(
        "--at", metavar="TIME", help="time, such as 2026-01-31T09:00:00Z; default now"
    )


def read_token(path: str) -> str:
    """Returns a token from a file; of one that is too long, enough to tell."""
    # Text that is not ASCII is refused later, with the problem named.
    return read_file(path, 2 * MAX_TOKEN_CHARS).decode("utf-8", "replace").strip()


def wall_ms(text: str | None) -> int | None:
    """Returns the time of `--at`."""
    if text is None:
        return None
    try:
        return parse_rfc3339(text)
    except ValueError:
        raise UsageError(
            f"`--at`: `{text}` is not a time with a time zone",
            hint="write it as `2026-01-31T09:00:00Z`",
        ) from None


def run(args: Args, out: Output) -> int:
    if args.depth < 0 or args.denials < 0:
        raise UsageError("`--depth` and `--denials` must not be negative")
    if args.hour is not None and not 0 <= args.hour <= 23:
        raise UsageError("`--hour` is a number from 0 to 23")
    found = show(
        places(os.environ),
        args.id,
        token=None if args.token_file is None else read_token(args.token_file),
        environment=args.env,
        depth=args.depth,
        hour=args.hour,
        denials=args.denials,
        at_ms=wall_ms(args.at),
    )
    if found.standing.problem:
        out.warning(found.standing.problem, "register the agent again")
    if args.json:
        out.json(found.plain())
    else:
        _print(args.id, found, out)
    return ExitCode.OK


def _print(agent_id: str, found: Shown, out: Output) -> None:
    registration, proof, trust = found.registration, found.checked.proof, found.trust
    if found.standing.is_revoked:
        out.line(shown(f"agent `{agent_id}` is revoked: every call of it is refused"))
    elif registration is None:
        out.line(shown(f"agent `{agent_id}` is not registered"))
    else:
        out.line(shown(told(registration)))
        for issuer in registration.issuers:
            out.line(shown(f"  proven by {_tokens(issuer)}"))
    if proof.problem:
        hint = f" ({found.checked.hint})" if found.checked.hint else ""
        out.line(f"proof: none: {shown(proof.problem)}{hint}")
    elif proof.subject is not None:
        until = f"{proof.kind.value} by {proof.issuer} as {proof.subject} until {proof.expires_at}"
        out.line(shown(f"proof: {until}"))
    else:
        out.line(f"proof: {proof.kind.value}")
    out.line(f"trust: {trust.effective_trust.value} ({trust.score} points)")
    out.line(f"  {trust.base_trust.value} to begin with")
    for adjustment in trust.adjustments:
        out.line(shown(f"  {adjustment.delta:+} {adjustment.reason}"))


def _tokens(issuer: Issuer) -> str:
    """Returns what a token of an issuer must say to prove the agent."""
    claims = "".join(f", {pointer}={value}" for pointer, value in issuer.claims.items())
    audience = f", aud {issuer.audience}"
    return f"tokens of {issuer.issuer}: sub {issuer.subject}{audience}{claims}"
