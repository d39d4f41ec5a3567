"""Tokens that prove an agent, and every forgery that must not (trust T2, T4)."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.requirements import requirement
from tests.trust import token_factory as make
from tests.trust.issued import (
    CLUSTER,
    FIXER,
    GITHUB,
    GITHUB_CLAIMS,
    GITLAB_CLAIMS,
    POD_CLAIMS,
    issuer,
    registration,
)
from tests.trust.token_factory import NOW_MS, NOW_S, compact, jwk, text, token

from subluminal.contracts.agents import Registration
from subluminal.contracts.vocabulary import AgentState, ProofKind
from subluminal.core.controls.attestations import Checked, check_attestation
from subluminal.trust.home_key import home_key
from subluminal.trust.home_tokens import make_token


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path / "state")


def check(
    state: str, given: str, agent: Registration = FIXER, *, at: int = NOW_MS, run: str = "run-1"
) -> Checked:
    return check_attestation(state, agent, given, now_ms=at, run_id=run)


def problem_of(state: str, given: str, agent: Registration = FIXER, **more: Any) -> str:
    """Returns why a token is refused. It proves nothing, and no text of it is repeated."""
    checked = check(state, given, agent, **more)
    assert checked.proof.kind is ProofKind.NONE
    assert checked.proof.issuer is checked.proof.subject is checked.proof.expires_at is None
    said = f"{checked.proof.problem} {checked.hint}"
    assert not [part for part in given.split(".") if len(part) > 3 and part in said]
    assert checked.proof.problem
    return checked.proof.problem


def claims(**changes: Any) -> dict[str, Any]:
    """Returns the claims of a good token, changed; None removes one."""
    full = {**GITHUB_CLAIMS, **changes}
    return {name: value for name, value in full.items() if value is not None}


@requirement("trust:attested")
@pytest.mark.parametrize("algorithm", ["ES256", "EdDSA", "RS256"])
@pytest.mark.parametrize(
    "given", [GITHUB_CLAIMS, GITLAB_CLAIMS, POD_CLAIMS], ids=["github", "gitlab", "pod"]
)
def test_a_token_of_a_registered_issuer_proves_the_agent(
    state: str, given: Any, algorithm: str
) -> None:
    checked = check(state, token(given, algorithm))
    proof = checked.proof
    assert (proof.kind, proof.problem) == (ProofKind.ATTESTED, None)
    assert (proof.issuer, proof.subject) == (given["iss"], given["sub"])
    assert proof.expires_at == "2027-01-15T08:05:00.000Z"
    assert not checked.has_expired


def test_a_header_may_lack_the_type_and_name_a_thumbprint(state: str) -> None:
    given = token(GITHUB_CLAIMS, header={"typ": None, "x5t": "eBZ_cn3sXYAd0ch4THBKHIgOwOE"})
    assert check(state, given).proof.kind is ProofKind.ATTESTED


@pytest.mark.parametrize(
    "changes",
    [{"iat": NOW_S + 60}, {"nbf": NOW_S + 60}, {"exp": NOW_S + 0.001}, {"iat": None, "nbf": None}],
)
def test_clocks_may_differ_by_a_minute(state: str, changes: dict[str, Any]) -> None:
    assert check(state, token(claims(**changes))).proof.problem is None


def confused(key: Any = make.RSA_KEY) -> bytes:
    """Returns a public key as the secret of an HMAC."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    pem: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem


def der_signed() -> str:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    signed = token(GITHUB_CLAIMS, "ES256").rpartition(".")[0]
    return f"{signed}.{text(make.EC_KEY.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))}"


def resigned(signature: bytes, algorithm: str = "ES256") -> str:
    return f"{token(GITHUB_CLAIMS, algorithm).rpartition('.')[0]}.{text(signature)}"


GOOD_HEADER = {"alg": "RS256", "kid": "rsa", "typ": "JWT"}
RSA = {"algorithm": "RS256", "key": make.RSA_KEY}
ALG = "`alg` is not one of ES256, EdDSA, RS256"
SIGNATURE = "signature of the token is not valid"
PARTS = "does not have three parts"
NOT_BASE64 = "is not base64url"
OWN_JWK = jwk("rsa", make.OTHER_RSA_KEY)

FORGERIES: dict[str, tuple[str, str]] = {
    "alg none": (compact({**GOOD_HEADER, "alg": "none"}, GITHUB_CLAIMS, b"x"), ALG),
    "alg none, no signature": (token(GITHUB_CLAIMS, header={"alg": "none"}).rpartition(".")[0] + ".", ALG),
    "alg None": (compact({**GOOD_HEADER, "alg": "None"}, GITHUB_CLAIMS, b"x"), ALG),
    "alg missing": (token(GITHUB_CLAIMS, header={"alg": None}), ALG),
    "alg a list": (token(GITHUB_CLAIMS, header={"alg": ["RS256"]}), ALG),
    "alg null": (compact('{"alg":null,"kid":"rsa"}', GITHUB_CLAIMS, b"x"), ALG),
    "HS256 with the public key": (token(GITHUB_CLAIMS, "HS256", key=confused()), ALG),
    "HS512": (token(GITHUB_CLAIMS, "HS512", key=b"secret"), ALG),
    "RS384": (token(GITHUB_CLAIMS, header={"alg": "RS384"}), ALG),
    "PS256": (token(GITHUB_CLAIMS, header={"alg": "PS256"}), ALG),
    "Ed25519 by its new name": (token(GITHUB_CLAIMS, "EdDSA", header={"alg": "Ed25519"}), ALG),
    "another RSA key": (token(GITHUB_CLAIMS, key=make.OTHER_RSA_KEY), SIGNATURE),
    "another EC key": (token(GITHUB_CLAIMS, "ES256", key=make.OTHER_EC_KEY), SIGNATURE),
    "another algorithm than the key's": (token(GITHUB_CLAIMS, "ES256", header={"kid": "rsa"}), "does not fit the key"),
    "an HMAC that says RS256": (compact(GOOD_HEADER, GITHUB_CLAIMS, algorithm="HS256", key=confused()), SIGNATURE),
    "jwk": (token(GITHUB_CLAIMS, key=make.OTHER_RSA_KEY, header={"jwk": OWN_JWK}), "has `jwk`"),
    "jku": (token(GITHUB_CLAIMS, header={"jku": "https://evil.example/keys"}), "has `jku`"),
    "x5u": (token(GITHUB_CLAIMS, header={"x5u": "https://evil.example/cert"}), "has `x5u`"),
    "x5c": (token(GITHUB_CLAIMS, header={"x5c": ["MIIB"]}), "has `x5c`"),
    "crit": (token(GITHUB_CLAIMS, header={"crit": ["exp"]}), "has `crit`"),
    "crit empty": (token(GITHUB_CLAIMS, header={"crit": []}), "has `crit`"),
    "b64": (token(GITHUB_CLAIMS, header={"b64": False}), "has `b64`"),
    "zip": (token(GITHUB_CLAIMS, header={"zip": "DEF"}), "has `zip`"),
    "cty": (token(GITHUB_CLAIMS, header={"cty": "JWT"}), "has `cty`"),
    "kid missing": (token(GITHUB_CLAIMS, header={"kid": None}), "has no `kid`"),
    "kid empty": (token(GITHUB_CLAIMS, header={"kid": ""}), "has no `kid`"),
    "kid a number": (token(GITHUB_CLAIMS, header={"kid": 1}), "has no `kid`"),
    "kid unknown": (token(GITHUB_CLAIMS, header={"kid": "rsa2"}), "`kid` is not in the issuer's keys"),
    "kid a path": (token(GITHUB_CLAIMS, header={"kid": "../../dev/null"}), "`kid` is not in the issuer's keys"),
    "typ of something else": (token(GITHUB_CLAIMS, header={"typ": "dpop+jwt"}), "`typ` is not that of an attestation"),
    "typ a number": (token(GITHUB_CLAIMS, header={"typ": 3}), "`typ` is not text"),
    "DER": (der_signed(), "not the 64 bytes of R and S"),
    "R and S zero": (resigned(bytes(64)), "R or S zero"),
    "R zero": (resigned(bytes(32) + b"\1" * 32), "R or S zero"),
    "S zero": (resigned(b"\1" * 32 + bytes(32)), "R or S zero"),
    "R and S of the order": (resigned(bytes.fromhex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551") * 2), SIGNATURE),
    "R and S too long": (resigned(b"\0" + b"\1" * 64), "not the 64 bytes of R and S"),
    "EdDSA zero": (resigned(bytes(64), "EdDSA"), SIGNATURE),
    "EdDSA short": (resigned(b"\1" * 63, "EdDSA"), SIGNATURE),
    "RSA zero": (resigned(bytes(256), "RS256"), SIGNATURE),
    "RSA short": (resigned(b"\1", "RS256"), SIGNATURE),
    "no signature": (token(GITHUB_CLAIMS).rpartition(".")[0] + ".", f"signature of the token {NOT_BASE64}"),
    "iss of another": (token(claims(iss="https://evil.example")), "`iss` is not an issuer"),
    "iss with a slash more": (token(claims(iss=GITHUB + "/")), "`iss` is not an issuer"),
    "iss missing": (token(claims(iss=None)), "`iss` of the token is missing"),
    "iss a list": (token(claims(iss=[GITHUB])), "`iss` of the token is missing or not text"),
    "aud of another": (token(claims(aud="sts.amazonaws.com")), "does not contain the registered audience"),
    "aud a part": (token(claims(aud="subluminal-other")), "does not contain the registered audience"),
    "aud missing": (token(claims(aud=None)), "`aud` of the token is missing"),
    "aud empty": (token(claims(aud=[])), "does not contain the registered audience"),
    "aud with a number": (token(claims(aud=["subluminal", 1])), "`aud` of the token is missing, or neither"),
    "aud an object": (token(claims(aud={"subluminal": 1})), "`aud` of the token is missing, or neither"),
    "sub of another repository": (token(claims(sub="repo:evil/shop:ref:refs/heads/main")), "`sub` is not the registered"),
    "sub of a pull request": (token(claims(sub="repo:acme/shop:pull_request")), "`sub` is not the registered"),
    "sub with more before": (token(claims(sub="x repo:acme/shop:ref:refs/heads/main")), "`sub` is not the registered"),
    "sub missing": (token(claims(sub=None)), "`sub` of the token is missing"),
    "claim of another": (token(claims(repository_id="1235")), "claim `/repository_id` is not"),
    "claim missing": (token(claims(repository_id=None)), "claim `/repository_id` is not"),
    "claim a list": (token(claims(repository_id=["1234"])), "claim `/repository_id` is not"),
    "claim with a fraction": (token(claims(repository_id=1234.5)), "claim `/repository_id` is not"),
    "nested claim flattened": (token({**POD_CLAIMS, "kubernetes.io": None, "kubernetes.io/namespace": "agents"}), "claim `/kubernetes.io/namespace` is not"),
    "nested claim of another": (token({**POD_CLAIMS, "kubernetes.io": {"namespace": "kube-system"}}), "claim `/kubernetes.io/namespace` is not"),
    "exp missing": (token(claims(exp=None)), "has no `exp`"),
    "exp text": (token(claims(exp=str(NOW_S + 300))), "`exp` of the token is not a number"),
    "exp null": (compact(GOOD_HEADER, {**GITHUB_CLAIMS, "exp": None}, **RSA), "`exp` of the token is not a number"),
    "exp true": (token(claims(exp=True)), "`exp` of the token is not a number"),
    "exp huge": (token(claims(exp=10**18)), "`exp` of the token is not a time"),
    "exp beyond floats": (compact(GOOD_HEADER, json.dumps(claims(exp=0))[:-1].replace('"exp": 0', '"exp": 1e400') + "}", **RSA), "`exp` of the token is not a time"),
    "exp negative": (token(claims(exp=-1)), "`exp` of the token is not a time"),
    "exp NaN": (compact(GOOD_HEADER, json.dumps(claims(exp=float("nan"))), **RSA), "is not JSON that every parser"),
    "exp now": (token(claims(exp=NOW_S)), "the token has expired"),
    "exp a second ago": (token(claims(exp=NOW_S - 1)), "the token has expired"),
    "iat 61 s ahead": (token(claims(iat=NOW_S + 61)), "`iat` of the token is more than 60 s"),
    "iat text": (token(claims(iat="0")), "`iat` of the token is not a number"),
    "nbf 61 s ahead": (token(claims(nbf=NOW_S + 61)), "`nbf` of the token is more than 60 s"),
    "nbf text": (token(claims(nbf="")), "`nbf` of the token is not a number"),
    "alg twice": (compact('{"alg":"none","kid":"rsa","alg":"RS256"}', GITHUB_CLAIMS, **RSA), "header of the token has a member twice"),
    "sub twice": (compact(GOOD_HEADER, json.dumps(GITHUB_CLAIMS)[:-1] + ',"sub":"x"}', **RSA), "payload of the token has a member twice"),
    "sub twice, once escaped": (compact(GOOD_HEADER, json.dumps(GITHUB_CLAIMS)[:-1] + ',"s\\u0075b":"x"}', **RSA), "payload of the token has a member twice"),
    "nested twice": (compact(GOOD_HEADER, json.dumps(GITHUB_CLAIMS)[:-1] + ',"a":{"b":1,"b":2}}', **RSA), "has a member twice"),
    "over 16 KiB": (token(claims(filler="x" * 16_384)), "longer than 16384 characters"),
    "empty": ("", PARTS),
    "two parts": (token(GITHUB_CLAIMS).rpartition(".")[0], PARTS),
    "four parts": (token(GITHUB_CLAIMS) + ".x", PARTS),
    "encrypted": (token(GITHUB_CLAIMS) + ".x.y", PARTS),
    "padding": (token(GITHUB_CLAIMS, "ES256") + "==", NOT_BASE64),
    "other alphabet": (token(GITHUB_CLAIMS).replace(".", "+.", 1), NOT_BASE64),
    "space inside": (token(GITHUB_CLAIMS).replace(".", " .", 1), NOT_BASE64),
    "not ASCII": (token(GITHUB_CLAIMS).replace(".", "é.", 1), NOT_BASE64),
    "spare bits": (token(GITHUB_CLAIMS, "ES256")[:-1] + chr(ord(token(GITHUB_CLAIMS, "ES256")[-1]) + 1), NOT_BASE64),
    "header a list": (compact("[1]", GITHUB_CLAIMS, **RSA), "header of the token is not a JSON object"),
    "claims a list": (compact(GOOD_HEADER, "[1]", **RSA), "payload of the token is not a JSON object"),
    "header not JSON": (compact("{", GITHUB_CLAIMS, **RSA), "header of the token is not JSON"),
    "claims not JSON": (compact(GOOD_HEADER, "{'a':1}", **RSA), "payload of the token is not JSON"),
    "a byte order mark": (compact(GOOD_HEADER, "\ufeff" + json.dumps(GITHUB_CLAIMS), **RSA), "payload of the token is not JSON"),
    "claims nested deep": (compact(GOOD_HEADER, "[" * 600 + "]" * 600, **RSA), "payload of the token is not JSON"),
}  # fmt: skip


@requirement("trust:forgeries")
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused_by_its_name(state: str, name: str) -> None:
    given, expected = FORGERIES[name]
    assert expected in problem_of(state, given)


@requirement("trust:forgeries")
def test_a_signature_covers_header_and_claims(state: str) -> None:
    one, other = token(GITHUB_CLAIMS).split("."), token(claims(jti="another")).split(".")
    assert SIGNATURE in problem_of(state, ".".join([one[0], other[1], one[2]]))
    header = text(json.dumps({**GOOD_HEADER, "x": 1}).encode())
    assert SIGNATURE in problem_of(state, ".".join([header, *one[1:]]))


@pytest.mark.parametrize(
    "keys",
    [
        {"keys": []},
        {"keys": [{"kty": "oct", "kid": "rsa", "alg": "HS256"}]},
        {"keys": [jwk("rsa", make.RSA_KEY, use="enc")]},
        {"keys": [jwk("rsa", make.RSA_KEY, alg="RS512")]},
        {"keys": [jwk("rsa", make.RSA_KEY, key_ops=["encrypt"])]},
        {"keys": [jwk("rsa", make.RSA_KEY, key_ops="verify")]},
        {"keys": [jwk("rsa", make.P384_KEY)]},
        {"keys": [{**jwk("rsa", make.RSA_KEY), "n": "é"}]},
        {"keys": "rsa"},
        {},
    ],
)
def test_keys_for_something_else_verify_nothing(state: str, keys: dict[str, Any]) -> None:
    agent = registration(issuer(GITHUB, "*", jwks=keys))
    assert "`kid` is not in the issuer's keys" in problem_of(state, token(GITHUB_CLAIMS), agent)


@pytest.mark.parametrize("changes", [{"x": "AA"}, {"x": "é"}, {"y": text(b"\1" * 32)}])
def test_a_key_that_is_no_point_verifies_nothing(state: str, changes: dict[str, str]) -> None:
    agent = registration(
        issuer(GITHUB, "*", jwks={"keys": [{**jwk("ec", make.EC_KEY), **changes}]})
    )
    assert SIGNATURE in problem_of(state, token(GITHUB_CLAIMS, "ES256"), agent)


def test_a_short_rsa_key_verifies_nothing(state: str) -> None:
    agent = registration(issuer(GITHUB, "*", jwks={"keys": [jwk("rsa", make.SHORT_RSA_KEY)]}))
    given = token(GITHUB_CLAIMS, key=make.SHORT_RSA_KEY)
    assert "`kid` is not in the issuer's keys" in problem_of(state, given, agent)


def test_claims_are_compared_as_they_are_written(state: str) -> None:
    given = {**POD_CLAIMS, "a/b": {"~c": [True, 7, "7", None]}}
    for pointer, wanted, holds in [
        ("/a~1b/~0c/0", "true", True),
        ("/a~1b/~0c/1", "7", True),
        ("/a~1b/~0c/2", "7", True),
        ("/a~1b/~0c/1", 7, True),
        ("/a~1b/~0c/2", 7, False),
        ("/a~1b/~0c/0", 1, False),
        ("/a~1b/~0c/3", "null", False),
        ("/a~1b/~0c/01", "7", False),
        ("/a~1b/~0c/-", "7", False),
        ("/a~1b/~0c/9", "7", False),
        ("/a~1b/~0c", "7", False),
        ("/a/b", "7", False),
    ]:
        agent = registration(issuer(CLUSTER, "*", claims={pointer: wanted}))
        proven = check(state, token(given), agent).proof.kind is ProofKind.ATTESTED
        assert proven is holds, (pointer, wanted)


@requirement("trust:home-tokens")
def test_a_token_of_this_home_proves_one_agent(state: str, tmp_path: Path) -> None:
    key = home_key(state)
    given = make_token(key, "fixer", now_ms=NOW_MS, ttl_ms=60_000)
    proof = check(state, given).proof
    assert (proof.kind, proof.subject) == (ProofKind.ATTESTED, "fixer")
    assert proof.issuer == f"sub-home:{key.key_id}"
    other = registration(agent_id="fixer2")
    assert problem_of(state, given, other) == "the token is for another agent"
    assert problem_of(str(tmp_path / "elsewhere"), given) == "the token was signed by another home"
    home_key(str(tmp_path / "other"))
    assert problem_of(str(tmp_path / "other"), given) == "the token was signed by another home"
    assert problem_of(state, given, at=NOW_MS + 60_000) == "the token has expired"
    assert check(state, given, at=NOW_MS + 60_000).has_expired


@requirement("trust:home-tokens")
def test_a_token_for_one_run_is_good_in_that_run(state: str) -> None:
    given = make_token(home_key(state), "fixer", now_ms=NOW_MS, ttl_ms=60_000, run_id="run-1")
    assert check(state, given).run_id == "run-1"
    assert problem_of(state, given, run="run-2") == "the token is for another run"
    asked = check_attestation(state, FIXER, given, now_ms=NOW_MS, run_id=None)
    assert (asked.proof.kind, asked.run_id) == (ProofKind.ATTESTED, "run-1")


def home_claims(key_id: str, **changes: Any) -> dict[str, Any]:
    full = {"iss": f"sub-home:{key_id}", "sub": "fixer", "aud": "subluminal", "exp": NOW_S + 60}
    return {**full, **changes}


@requirement("trust:home-tokens")
def test_each_kind_of_token_is_checked_with_its_own_keys(state: str) -> None:
    key = home_key(state)
    header = {"typ": "sub-agent+jwt", "kid": key.key_id}
    own = home_claims(key.key_id)
    assert "another home" in problem_of(state, token(own, header={"typ": "sub-agent+jwt"}))
    assert "does not fit the key" in problem_of(state, token(own, header=header))
    assert SIGNATURE in problem_of(state, token(own, "ES256", header=header))
    agent = registration(issuer(f"sub-home:{key.key_id}", "*"))
    assert "another home" in problem_of(state, token(own, header={"typ": "SUB-AGENT+JWT"}), agent)

    def signed(claims: dict[str, Any], typ: str = "sub-agent+jwt") -> str:
        parts = [{"alg": "ES256", "kid": key.key_id, "typ": typ}, claims]
        body = ".".join(text(json.dumps(part).encode()) for part in parts)
        return f"{body}.{text(key.sign_token(body.encode()))}"

    assert check(state, signed(own)).proof.kind is ProofKind.ATTESTED
    assert "issued by another home" in problem_of(state, signed(home_claims("0" * 64)))
    assert "audience" in problem_of(state, signed(home_claims(key.key_id, aud="else")))
    assert "`run_id`" in problem_of(state, signed(home_claims(key.key_id, run_id=7)))
    assert "not an issuer" in problem_of(state, signed(own, typ="JWT"))


def test_a_message_with_a_purpose_is_no_token(state: str) -> None:
    with pytest.raises(ValueError, match="not the parts of a JWT"):
        home_key(state).sign_token(b"checkpoint\0data")


@requirement("trust:revoked")
def test_nothing_proves_a_revoked_agent(state: str) -> None:
    agent = registration(*FIXER.issuers, state=AgentState.REVOKED)
    assert problem_of(state, token(GITHUB_CLAIMS), agent) == "the agent is revoked"
    given = make_token(home_key(state), "fixer", now_ms=NOW_MS, ttl_ms=60_000)
    assert problem_of(state, given, agent) == "the agent is revoked"


def test_nothing_proves_an_agent_that_nobody_registered(state: str) -> None:
    found = check_attestation(state, None, token(GITHUB_CLAIMS), now_ms=NOW_MS, run_id="run-1")
    assert (found.proof.kind, found.proof.problem) == (
        ProofKind.NONE,
        "the agent is not registered",
    )


def test_a_home_key_that_cannot_be_used_proves_nothing(state: str) -> None:
    given = make_token(home_key(state), "fixer", now_ms=NOW_MS, ttl_ms=60_000)
    Path(state, "keys", "home.pem").write_text("not a key")
    assert problem_of(state, given) == "the token was signed by another home"
    assert check(state, token(GITHUB_CLAIMS)).proof.kind is ProofKind.ATTESTED
