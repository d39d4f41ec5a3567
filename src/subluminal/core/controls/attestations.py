"""Verifies the attestation that an agent shows, with this home's registry and key.

Loads cryptography and joserfc, so it runs in commands and helper processes, never in a shim.
"""

from typing import NamedTuple

from subluminal.clock import rfc3339
from subluminal.contracts.agents import Proof, Registration
from subluminal.contracts.bundle import NameMatch
from subluminal.contracts.vocabulary import ProofKind
from subluminal.policy.patterns import NameIndex, compile_names
from subluminal.trust.keys import VerifierMissing
from subluminal.trust.proofs import Home, TokenExpired, verify_token
from subluminal.trust.tokens import TokenRefused


class Checked(NamedTuple):
    """What an attestation proves; `proof.problem` says why it proves nothing."""

    proof: Proof
    has_expired: bool
    """whether it proved the agent until its time was over"""
    run_id: str | None = None
    """the only run that the attestation is valid in; None for any run"""
    hint: str | None = None
    """what a person can do about the problem"""


def check_attestation(
    state_dir: str,
    registration: Registration | None,
    token: str,
    *,
    now_ms: int,
    run_id: str | None,
) -> Checked:
    """Verifies a token offline. Never raises for a bad one, and never repeats text of it.

    `run_id` is the run that shows the token; None if a person asks.
    """
    if registration is None:
        return _refused(TokenRefused("the agent is not registered"))
    try:
        found = verify_token(
            token.strip(),
            registration,
            _home(state_dir),
            now_ms=now_ms,
            run_id=run_id,
            is_match=is_glob_match,
        )
    except TokenRefused as error:
        return _refused(error)
    proof = Proof(
        kind=ProofKind.ATTESTED,
        issuer=found.issuer,
        subject=found.subject,
        expires_at=rfc3339(found.expires_at_ms),
    )
    return Checked(proof, False, found.run_id)


def is_glob_match(glob: str, text: str) -> bool:
    """Whether a glob, as policies have them, matches a whole text."""
    return 0 in NameIndex([compile_names(NameMatch(glob=[glob]))]).match(text)


def _refused(error: TokenRefused) -> Checked:
    proof = Proof(kind=ProofKind.NONE, problem=str(error))
    return Checked(proof, isinstance(error, TokenExpired), hint=error.hint)


def _home(state_dir: str) -> Home | None:
    try:
        from subluminal.trust.home_key import HomeKeyUnusable, existing_home_key
        from subluminal.trust.home_tokens import home_of
    except ImportError:
        raise VerifierMissing from None
    try:
        key = existing_home_key(state_dir)
    except HomeKeyUnusable:
        return None  # its tokens then prove nothing
    return None if key is None else home_of(key.public)
