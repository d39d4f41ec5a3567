"""Issuers of an agent as a person gives them: key sets, subjects and claims, checked."""

from typing import Any, NamedTuple

from subluminal.canonical import parse
from subluminal.contracts.agents import Issuer
from subluminal.errors import AmbiguousJSON, SubluminalError, UsageError
from subluminal.policy.patterns import glob_problem
from subluminal.trust.keys import usable_keys
from subluminal.trust.pointers import pointer_problem

MAX_JWKS_BYTES = 1 << 20
_HOME_PREFIX = "sub-home:"


class IssuerGiven(NamedTuple):
    """An issuer as the command line has it."""

    issuer: str
    subject: str | None
    audience: str | None
    claims: list[str]
    """each `/POINTER=VALUE`"""
    jwks: bytes | None
    """content of the key set's file"""
    jwks_file: str = ""


def changed_issuers(
    before: list[Issuer], given: IssuerGiven | None, removed: list[str]
) -> list[Issuer]:
    """Returns the issuers after a change: the given one replaces the one of the same name."""
    unknown = set(removed) - {each.issuer for each in before}
    if unknown:
        raise UsageError(f"the agent has no issuer `{min(unknown)}`")
    gone = {*removed, *([given.issuer] if given is not None else [])}
    kept = [each for each in before if each.issuer not in gone]
    return kept if given is None else [*kept, issuer_of(given)]


def issuer_of(given: IssuerGiven) -> Issuer:
    """Returns the issuer that a person gave. Raises SubluminalError."""
    if not given.issuer or given.issuer.startswith(_HOME_PREFIX):
        raise UsageError(
            "`--issuer` is the exact `iss` of the tokens, such as"
            " https://token.actions.githubusercontent.com",
            hint="tokens of this home's key need no issuer",
        )
    if not given.subject:
        raise UsageError(
            "an issuer needs `--subject`",
            hint="without it, every token of the issuer would prove the agent",
        )
    if given.jwks is None:
        raise UsageError("an issuer needs `--jwks`", hint="the file with its public keys (JWKS)")
    claims = dict(map(_claim, given.claims))
    problem = glob_problem(given.subject)
    if problem is not None:
        raise UsageError(f"`--subject`: {problem}")
    if not given.subject.strip("*") and not claims:
        raise UsageError(
            "`--subject '*'` alone lets every token of the issuer prove the agent",
            hint="say more of the subject, or add `--claim`",
        )
    return Issuer(
        issuer=given.issuer,
        subject=given.subject,
        audience=given.audience or "subluminal",
        claims=claims,
        jwks=_keys(given.jwks, given.jwks_file),
    )


def _keys(data: bytes, file: str) -> dict[str, Any]:
    if len(data) > MAX_JWKS_BYTES:
        raise SubluminalError(f"`{file}` has more than {MAX_JWKS_BYTES} bytes")
    try:
        return {"keys": list(usable_keys(parse(data).value).values())}
    except AmbiguousJSON as error:
        raise SubluminalError(f"`{file}`: {error}", hint="give a key set in JSON") from None


def _claim(text: str) -> tuple[str, str]:
    pointer, equals, value = text.partition("=")
    problem = pointer_problem(pointer) if equals else "write it as /POINTER=VALUE"
    if problem is not None:
        raise UsageError(f"`--claim {text}`: {problem}")
    return pointer, value
