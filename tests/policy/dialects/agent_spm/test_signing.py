"""Signatures of bundles: over every member, unlike Agent-SPM's own, which covers no rule."""

import hashlib
import hmac
import json

import pytest
from tests.policy.dialects.agent_spm.spm_bundles import problems_of, spm, spm_rule
from tests.requirements import requirement

from subluminal.contracts.vocabulary import Dialect
from subluminal.errors import AmbiguousJSON
from subluminal.policy.dialects.agent_spm.signing import SigningKey, signature_of
from subluminal.policy.terms import Terms

KEY = b"test-secret-key"
BUNDLE = spm(spm_rule(constraints={"max": 1.5, "é": [True, None]}), default="DENY")
TOLD = "`signature`: the signature is missing or wrong"


def mac(text: str, key: bytes = KEY) -> str:
    """An HMAC of our own, by hand from RFC 2104."""
    block = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block) + text.encode()).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in block) + inner).hexdigest()


def canonical(value) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def signed(value=BUNDLE, key: bytes = KEY, *, legacy: bool = False):
    return {**value, "signature": signature_of(value, key, legacy=legacy)}


def told(value, *, legacy: bool = False) -> list[str]:
    found = problems_of(value, Terms(key=SigningKey(KEY, legacy)))
    return [problem.message for problem in found]


@requirement("trust:dialect-signature")
def test_the_signature_is_an_hmac_over_the_canonical_bundle():
    assert signature_of(BUNDLE, KEY) == mac(canonical(BUNDLE))
    assert signature_of(signed(), KEY) == mac(canonical(BUNDLE))


def test_the_weak_form_is_agent_spms():
    """Verified there: members of rules and defaults are dropped, at every depth."""
    head = f'"expires_at":"{BUNDLE["expires_at"]}","generated_at":"{BUNDLE["generated_at"]}"'
    text = '{"defaults":{},' + head + ',"rules":[{}],"version":"0.1.0"}'
    assert signature_of(BUNDLE, KEY, legacy=True) == mac(text)


def test_a_signed_bundle_is_accepted():
    assert told(signed()) == []


@requirement("trust:dialect-signature")
@pytest.mark.parametrize(
    "change",
    [
        {"rules": []},
        {"rules": [{**BUNDLE["rules"][0], "outcome": "ALLOW"}]},
        {"rules": [{**BUNDLE["rules"][0], "when": {"contains_any": ["x"]}}]},
        {"rules": [{**BUNDLE["rules"][0], "match": {"tool_name": "x", "environment": "*"}}]},
        {"defaults": {"outcome": "ALLOW"}},
        {"expires_at": "2100-01-01T00:00:00Z"},
        {"comment": "one more"},
    ],
    ids=["no rules", "outcome", "condition", "tool", "default", "date", "member"],
)
def test_any_change_breaks_the_signature(change):
    """The attack on Agent-SPM: there all but the last two pass."""
    assert told({**signed(), **change}) == [TOLD]


@pytest.mark.parametrize(
    "signature",
    [None, "", 5, [], "0" * 64, signature_of(BUNDLE, KEY).upper(), signature_of(BUNDLE, KEY)[:-1],
     signature_of(BUNDLE, KEY) + "\n", signature_of(BUNDLE, b"other"), "é" * 32,
     signature_of(BUNDLE, KEY, legacy=True)],
)  # fmt: skip
def test_a_missing_and_a_wrong_signature_are_told_alike(signature):
    assert told({**BUNDLE, "signature": signature}) == [TOLD]
    assert told(BUNDLE) == [TOLD]


def test_a_wrong_signature_is_the_only_problem_told():
    """What stands in a forged bundle is nobody's business."""
    assert told({**BUNDLE, "rules": [{}], "signature": "0" * 64}) == [TOLD]
    found = problems_of([], Terms(key=SigningKey(KEY), dialect=Dialect.AGENT_SPM))
    assert [problem.message for problem in found] == [TOLD]


@requirement("trust:dialect-signature")
def test_the_weak_form_needs_its_switch():
    assert told(signed(legacy=True)) == [TOLD]
    assert told(signed(legacy=True), legacy=True) == []
    assert told(signed(), legacy=True) == []
    assert told({**signed(legacy=True), "expires_at": "2100-01-01T00:00:00Z"}, legacy=True) == [
        TOLD
    ]


def test_without_a_key_a_signature_is_not_looked_at():
    assert problems_of({**BUNDLE, "signature": "nothing"}) == []


def test_a_policy_that_cannot_be_signed_is_refused_if_only_signed_ones_count():
    native = {"policy_id": "p", "rules": []}
    (problem,) = problems_of(native, Terms(key=SigningKey(KEY), only_signed=True))
    assert problem.message == (
        "the signature is missing or wrong: only bundles of Agent-SPM can be signed"
    )
    assert "leave the key out" in str(problem.hint)


def test_the_comparison_takes_constant_time(monkeypatch):
    """Every form is compared by `hmac.compare_digest`, and none is left out."""
    compared = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((a, b)) or real(a, b))
    told(signed(), legacy=True)
    assert len(compared) == 2


def test_a_number_that_jcs_cannot_write_cannot_be_signed():
    with pytest.raises(AmbiguousJSON):
        signature_of({**BUNDLE, "n": 2**60 + 1}, KEY)
    assert told({**signed(), "n": 2**60 + 1}) == [TOLD]
