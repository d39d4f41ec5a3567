"""Envelopes: built, checked, hashed."""

from collections.abc import Callable
from decimal import Decimal
from enum import IntEnum, StrEnum
from hashlib import sha256
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.canonical.values import double_values, texts
from tests.kernel.making import AT, LLM, envelope
from tests.requirements import requirement

from subluminal.canonical import AmbiguousJSON
from subluminal.errors import SubluminalError
from subluminal.kernel import (
    IntentActor,
    IntentEnvelope,
    build_envelope,
    canonical_json,
    is_intent_envelope,
    legacy_v1_to_v2,
    read_envelope,
    sha256_canonical,
    tainted,
    with_payload,
)
from subluminal.kernel.envelope import derive_intent_hash
from subluminal.kernel.taint import MAX_VALUES


def reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: reordered(value[name]) for name in reversed(value)}
    return [reordered(member) for member in value] if isinstance(value, list) else value


@requirement("003:hash-order")
@given(double_values)
def test_the_order_of_keys_does_not_change_the_hash(payload: Any) -> None:
    """Seed 003: hash determinism."""
    try:
        one = envelope({"p": payload})
    except AmbiguousJSON as error:  # two keys of one normal form
        assume("duplicate key" not in str(error))
        raise
    other = envelope(reordered({"p": payload}))
    assert one.intent_hash == other.intent_hash


@requirement("003:retries")
def test_a_retry_with_the_nonce_is_the_same_intent() -> None:
    """Seed 003: createdAt is description, the nonce is what counts."""
    first, retry = envelope(), envelope(created_at="2030-01-01T00:00:00Z")
    assert first.intent_hash == retry.intent_hash
    assert envelope(nonce="n-2").intent_hash != first.intent_hash


@requirement("003:intent-hash")
@pytest.mark.parametrize(
    "changed",
    [
        {"kind": "order.cancel"},
        {"payload": {"qty": 2}},
        {"nonce": "n-2"},
        {"actor": IntentActor("user", "s-1")},
        {"actor": IntentActor("llm", "s-2")},
        {"actor": IntentActor("llm", "s-1", "clerk")},
        {"taint": "TRUSTED"},
        {"resource_refs": {}},
        {"resource_refs": {"order": "7"}},
        {"origin": "LLM"},
    ],
    ids=str,
)
def test_every_member_that_counts_is_in_the_hash(changed: dict[str, Any]) -> None:
    assert envelope(**changed).intent_hash != envelope().intent_hash


def test_strings_are_hashed_in_their_normal_form() -> None:
    composed, decomposed = envelope({"n": "caf\u00e9"}), envelope({"n": "cafe\u0301"})
    assert composed.intent_hash == decomposed.intent_hash
    assert decomposed.payload["n"] == "cafe\u0301"


def test_the_payload_is_a_copy_in_plain_json() -> None:
    class Word(StrEnum):
        A = "a"

    class Number(IntEnum):
        ONE = 1

    class Half(float):
        pass

    mine = {"list": [1]}
    given_ = {
        "mine": mine,
        "tuple": (1, 2),
        "word": Word.A,
        "number": Number.ONE,
        "half": Half(0.5),
        "decimal": Decimal("0.25"),
        "field": tainted("x", "UNTRUSTED"),
        "actor": LLM,
        "map": MappingProxyType({"a": None}),
    }
    payload = envelope(given_).payload
    mine["list"].append(2)
    assert payload == {
        "mine": {"list": [1]},
        "tuple": [1, 2],
        "word": "a",
        "number": 1,
        "half": 0.5,
        "decimal": 0.25,
        "field": {"value": "x", "taint": "UNTRUSTED"},
        "actor": {"principal": "llm", "sessionId": "s-1"},
        "map": {"a": None},
    }
    assert [type(payload[n]) for n in ("word", "number", "half")] == [str, int, float]


def cyclic() -> list[Any]:
    knot: list[Any] = []
    knot += [knot, knot]
    return knot


def deep() -> list[Any]:
    made: list[Any] = []
    for _ in range(1000):
        made = [made]
    return made


def exploding() -> list[Any]:
    bomb: list[Any] = []
    for _ in range(100):
        bomb = [bomb, bomb]
    return bomb


@pytest.mark.parametrize(
    "payload",
    [
        float("nan"),
        float("inf"),
        Decimal("NaN"),
        Decimal("1e400"),
        2**53 + 1,
        "\ud800",
        {"\ud800": 1},
        {1: 2},
        {"\u00e9": 1, "e\u0301": 2},
        b"bytes",
        {1, 2},
        len,
    ],
    ids=ascii,
)
def test_what_has_no_canonical_form_is_not_built(payload: Any) -> None:
    with pytest.raises(AmbiguousJSON):
        build_envelope("k", payload, actor=LLM, taint="SYSTEM", nonce="n", created_at=AT)


@pytest.mark.parametrize("make", [cyclic, deep, exploding, lambda: [0] * (MAX_VALUES + 1)])
def test_what_is_endless_or_huge_is_not_built(make: Callable[[], Any]) -> None:
    with pytest.raises(AmbiguousJSON):
        build_envelope("k", make(), actor=LLM, taint="SYSTEM", nonce="n", created_at=AT)


@pytest.mark.parametrize(
    "changed",
    [
        {"nonce": ""},
        {"nonce": 1},
        {"kind": None},
        {"created_at": 5},
        {"taint": "ROOT"},
        {"taint": None},
        {"origin": "Elsewhere"},
        {"actor": None},
        {"actor": IntentActor("root", "s")},
        {"actor": IntentActor(7, "s")},  # type: ignore[arg-type]
        {"actor": IntentActor("llm", None)},  # type: ignore[arg-type]
        {"actor": IntentActor("llm", "s", 3)},  # type: ignore[arg-type]
        {"resource_refs": {"a": 1}},
        {"resource_refs": {1: "a"}},
    ],
    ids=str,
)
def test_a_wrong_member_is_refused_with_a_sentence(changed: dict[str, Any]) -> None:
    with pytest.raises(SubluminalError):
        envelope(**changed)


def forged(**changed: Any) -> IntentEnvelope:
    return msgspec.structs.replace(envelope(), **changed)


@requirement("003:envelope")
def test_is_intent_envelope_looks_at_types() -> None:
    wire = msgspec.to_builtins(envelope(origin="Human", resource_refs={"a": "b"}))
    assert is_intent_envelope(envelope())
    assert is_intent_envelope(wire)
    assert is_intent_envelope(MappingProxyType(wire))
    assert is_intent_envelope(forged(intent_hash="not the hash"))
    wrong: list[Any] = [
        None,
        {},
        wire | {"version": 1},
        wire | {"taint": "ROOT"},
        wire | {"payload": float},
        {name: value for name, value in wire.items() if name != "nonce"},
        forged(version=1),
        forged(version=2.0),
        forged(version=True),
        forged(kind=b"k"),
        forged(taint="ROOT"),
        forged(taint=[]),
        forged(taint=type("Level", (str,), {})("SYSTEM")),
        forged(origin="Nowhere"),
        forged(origin=3),
        forged(resource_refs=[]),
    ]
    assert [value for value in wrong if is_intent_envelope(value)] == []


@given(texts, texts, st.sampled_from(["llm", "user", "system"]))
def test_the_wire_reads_back_as_it_was(kind: str, nonce: str, principal: str) -> None:
    assume(nonce)
    made = envelope({"a": [1, None]}, kind=kind, nonce=nonce, actor=IntentActor(principal, "s"))
    wire = msgspec.json.decode(msgspec.json.encode(made))
    assert set(wire) == {
        "version", "kind", "payload", "createdAt", "nonce", "actor", "taint", "intentHash"
    }  # fmt: skip
    assert read_envelope(wire) == made


def test_with_payload_keeps_everything_but_payload_and_hash() -> None:
    before = envelope(origin="LLM")
    after = with_payload(before, {"qty": 2})
    assert after == msgspec.structs.replace(
        before, payload={"qty": 2}, intent_hash=after.intent_hash
    )
    assert derive_intent_hash(after) == after.intent_hash != before.intent_hash


@requirement("003:legacy-rows")
def test_a_row_of_version_1_becomes_an_envelope_of_version_2() -> None:
    wire = msgspec.to_builtins(envelope()) | {"version": 1, "intentHash": "old"}
    del wire["nonce"]
    old = legacy_v1_to_v2({"envelope_jsonb": wire})
    assert (old.version, old.nonce) == (2, AT)
    assert old.intent_hash == derive_intent_hash(old) != "old"
    assert legacy_v1_to_v2({"envelope": wire | {"nonce": "stored"}}).nonce == "stored"
    assert legacy_v1_to_v2({"envelope": wire | {"nonce": "stored"}, "nonce": "row"}).nonce == "row"
    with pytest.raises(SubluminalError, match="no envelope"):
        legacy_v1_to_v2({"nonce": "n"})
    with pytest.raises(SubluminalError, match="not an envelope"):
        legacy_v1_to_v2({"envelope": wire | {"createdAt": None}})


@requirement("003:canonical-json")
def test_canonical_json_is_sorted_normal_and_takes_structs() -> None:
    assert canonical_json({"b": 1.0, "a": "e\u0301"}) == '{"a":"é","b":1}'.encode()
    assert canonical_json(LLM) == b'{"principal":"llm","sessionId":"s-1"}'
    assert sha256_canonical({"b": 1, "a": 2}) == sha256(b'{"a":2,"b":1}').hexdigest()
