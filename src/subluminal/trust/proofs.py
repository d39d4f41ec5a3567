"""Whether a token proves an agent. Pure: the time is an argument.

Two kinds of tokens prove an agent: those of an issuer that a person registered with the agent
(GitHub, GitLab, Kubernetes), and those that `sub agents attest` signed with this home's key. The
header's `typ` says which of the two rules apply, and each kind is checked with its own keys only.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from subluminal.contracts.agents import Issuer, Registration
from subluminal.contracts.vocabulary import AgentState
from subluminal.trust.keys import KeysUnusable, usable_keys, verify
from subluminal.trust.pointers import is_wanted, value_at
from subluminal.trust.tokens import Token, TokenRefused, read_token, seconds, text_of

HOME_TOKEN = "sub-agent+jwt"
"""`typ` of the tokens that this home's key signs."""
HOME_AUDIENCE = "subluminal"

_MAX_SKEW_S = 60
"""How far the clocks of an issuer and of this machine may differ."""


class TokenExpired(TokenRefused):
    """A token that proved the agent until its time was over."""

    def __init__(self) -> None:
        super().__init__("the token has expired")


class Verified(NamedTuple):
    """What a token proves."""

    issuer: str
    subject: str
    expires_at_ms: int
    run_id: str | None
    """the only run that the token is valid in; None for any run"""


class Home(NamedTuple):
    """The public half of a home's key."""

    key_id: str
    jwk: dict[str, str]
    """the key as `keys.usable_keys` returns it"""

    @property
    def issuer(self) -> str:
        """`iss` of the tokens that this home's key signs."""
        return home_issuer(self.key_id)


def home_issuer(key_id: str) -> str:
    """Returns `iss` of the tokens that a home's key signs."""
    return f"sub-home:{key_id}"


def verify_token(
    text: str,
    registration: Registration,
    home: Home | None,
    *,
    now_ms: int,
    run_id: str | None,
    is_match: Callable[[str, str], bool],
) -> Verified:
    """Returns what a token proves about a registered agent. Raises TokenRefused.

    `home` is None while the home has no key. `run_id` is the run that presents the token; None if
    a person asks, and then a token for any run passes. `is_match` says whether a glob matches a
    whole text.
    """
    if registration.state is not AgentState.ACTIVE:
        raise TokenRefused("the agent is revoked")
    token = read_token(text)
    if token.kind == HOME_TOKEN:
        found = _verify_of_home(token, registration.agent_id, home)
    elif token.kind in (None, "jwt"):
        found = _verify_of_issuer(token, registration, is_match)
    else:
        raise TokenRefused("the token's `typ` is not that of an attestation")
    _check_time(token, now_ms)
    if run_id is not None and found.run_id not in (None, run_id):
        raise TokenRefused("the token is for another run")
    return found


def _verify_of_home(token: Token, agent_id: str, home: Home | None) -> Verified:
    if home is None or token.key_id != home.key_id:
        raise TokenRefused("the token was signed by another home")
    verify(token, home.jwk)
    if token.claims.get("iss") != home.issuer:
        raise TokenRefused("the token was issued by another home")
    if token.claims.get("sub") != agent_id:
        raise TokenRefused("the token is for another agent")
    _check_audience(token.claims, HOME_AUDIENCE)
    run_id = text_of(token.claims, "run_id") if "run_id" in token.claims else None
    return Verified(home.issuer, agent_id, _expiry_ms(token.claims), run_id)


def _verify_of_issuer(
    token: Token, registration: Registration, is_match: Callable[[str, str], bool]
) -> Verified:
    named = text_of(token.claims, "iss")
    issuer = next((each for each in registration.issuers if each.issuer == named), None)
    if issuer is None:
        raise TokenRefused("the token's `iss` is not an issuer that the agent is registered with")
    try:
        key = usable_keys(issuer.jwks).get(token.key_id)
    except KeysUnusable:
        key = None
    if key is None:
        raise TokenRefused(
            "the token's `kid` is not in the issuer's keys",
            hint="if the issuer has new keys, register the agent again with a new `--jwks` file",
        )
    verify(token, key)
    subject = _check_claims(token.claims, issuer, is_match)
    return Verified(issuer.issuer, subject, _expiry_ms(token.claims), None)


def _check_claims(
    claims: dict[str, Any], issuer: Issuer, is_match: Callable[[str, str], bool]
) -> str:
    _check_audience(claims, issuer.audience)
    subject = text_of(claims, "sub")
    if not is_match(issuer.subject, subject):
        raise TokenRefused("the token's `sub` is not the registered subject")
    for pointer, wanted in issuer.claims.items():
        if not is_wanted(value_at(claims, pointer), wanted):
            # The pointer comes from the registration, not from the token.
            raise TokenRefused(f"the token's claim `{pointer}` is not the registered value")
    return subject


def _check_audience(claims: dict[str, Any], wanted: str) -> None:
    given = claims.get("aud")
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise TokenRefused("`aud` of the token is missing, or neither text nor a list of texts")
    if wanted not in listed:
        raise TokenRefused("the token's `aud` does not contain the registered audience")


def _check_time(token: Token, now_ms: int) -> None:
    for name in ("nbf", "iat"):
        at = seconds(token.claims, name)
        if at is not None and at * 1000 > now_ms + _MAX_SKEW_S * 1000:
            raise TokenRefused(f"`{name}` of the token is more than {_MAX_SKEW_S} s in the future")
    if _expiry_ms(token.claims) <= now_ms:
        raise TokenExpired


def _expiry_ms(claims: dict[str, Any]) -> int:
    at = seconds(claims, "exp")
    if at is None:
        raise TokenRefused("the token has no `exp`")
    return math.floor(at * 1000)
