"""Whatever the token, it proves the agent only if it is one that the issuer signed for it."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.requirements import requirement
from tests.trust.issued import FIXER, GITHUB_CLAIMS, POD_CLAIMS
from tests.trust.token_factory import NOW_MS, NOW_S, compact, text, token

from subluminal.contracts.vocabulary import ProofKind, TrustLevel
from subluminal.core.controls.attestations import check_attestation
from subluminal.trust.levels import Circumstances, resolve

GOOD = [token(GITHUB_CLAIMS, algorithm) for algorithm in ("ES256", "EdDSA", "RS256")]
PIECES = [
    "", ".", "..", "=", "-", "_", "\0", "\n", " ", "é", "\ud800", "A", "e30", "eyJ", '{"alg":"none"}', "null", "\ufeff", "💥",
    text(b'{"alg":"none"}'), text(b'{"alg":"RS256","kid":"rsa"}'), text(json.dumps(GITHUB_CLAIMS).encode()), "A" * 20_000,
]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from([*GITHUB_CLAIMS.values(), "RS256", "none", "rsa", "sub-agent+jwt"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def level_of(given_token: str, state: str) -> TrustLevel:
    """Returns the trust that a token gives; checks that a refusal names a problem of our own."""
    checked = check_attestation(state, FIXER, given_token, now_ms=NOW_MS, run_id="run-1")
    if checked.proof.kind is ProofKind.NONE:
        assert checked.proof.problem is not None
        assert not [
            part
            for part in given_token.split(".")
            if len(part) > 40 and part in checked.proof.problem
        ]
    return resolve(
        FIXER, checked.proof.kind, Circumstances("ci"), has_expired=checked.has_expired
    ).facts.trust_level


@st.composite
def mutated(draw: Any) -> str:
    """A good token with some of its text cut, doubled, replaced or moved."""
    found = draw(st.sampled_from(GOOD))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(found)))
        end = draw(st.integers(start, min(len(found), start + 40)))
        piece = draw(st.sampled_from([*PIECES, found[start:end] * 2]) | st.text(max_size=4))
        found = found[:start] + piece + found[end:]
    return found


@requirement("trust:forgeries")
@given(mutated())
@settings(max_examples=400)
def test_a_token_that_was_changed_gives_no_more_trust(found: str) -> None:
    assert (level_of(found, "/nonexistent") is TrustLevel.PRIVILEGED) == (found.strip() in GOOD)


@requirement("trust:forgeries")
@given(st.text(max_size=300) | st.lists(st.binary(max_size=60).map(text), max_size=4).map(".".join))
@settings(max_examples=200)
def test_text_that_is_no_token_gives_no_more_trust(found: str) -> None:
    assert level_of(found, "/nonexistent") is TrustLevel.BASIC


@requirement("trust:forgeries")
@given(
    st.dictionaries(
        st.sampled_from(["alg", "kid", "typ", "crit", "jwk", "x5c", "x"]), VALUES, max_size=4
    )
)
@settings(max_examples=200)
def test_a_header_by_the_agent_gives_no_more_trust(header: dict[str, Any]) -> None:
    own = {"alg": "RS256", "kid": "rsa", **header}
    found = compact(own, GITHUB_CLAIMS, b"\1" * 256)
    assert level_of(found, "/nonexistent") is TrustLevel.BASIC


@requirement("trust:attested")
@given(
    st.sampled_from([GITHUB_CLAIMS, POD_CLAIMS]),
    st.dictionaries(st.sampled_from(["iss", "sub", "aud", "exp", "iat", "nbf", "repository_id", "kubernetes.io"]), VALUES, min_size=1, max_size=2),
)  # fmt: skip
@settings(max_examples=200)
def test_signed_claims_prove_the_agent_only_if_they_are_the_registered_ones(
    base: dict[str, Any], changes: dict[str, Any]
) -> None:
    """The issuer signs for many: what it says of another must not prove this agent."""
    given_token = token({**base, **changes}, "EdDSA")
    if level_of(given_token, "/nonexistent") is not TrustLevel.PRIVILEGED:
        return
    said = {**base, **changes}
    assert said["iss"] in [each.issuer for each in FIXER.issuers]
    assert "subluminal" in ([said["aud"]] if isinstance(said["aud"], str) else said["aud"])
    assert said["exp"] > NOW_S
    assert str(said["sub"]).startswith(
        ("repo:acme/shop:ref:", "system:serviceaccount:agents:fixer")
    )
    assert base is POD_CLAIMS or said["repository_id"] in ("1234", 1234)
