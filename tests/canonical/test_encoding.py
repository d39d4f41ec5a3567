"""`encode` against an independent RFC 8785, and its fast paths against its exact one."""

import hashlib
import json
import unicodedata
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st
from tests.canonical.values import as_text, double_values, exact_values, plain_values, texts
from tests.requirements import requirement

from subluminal.canonical import MAX_DEPTH, AmbiguousJSON, Profile, args_hash, digest, encode, parse
from subluminal.canonical.encoding import _Writer


@given(double_values)
@example({"\ufb33": 1, "\U0001f600": 2})
@example([-0.0, 1e21, 5e-324, 1e-7, 1e16, 123456789012345680000.0])
def test_jcs_is_what_an_independent_rfc8785_writes(value: Any) -> None:
    assert encode(value, Profile.JCS) == rfc8785.dumps(value)


@given(double_values)
def test_pack_differs_from_rfc8785_in_the_order_of_keys_only(value: Any) -> None:
    text = encode(value)
    assert rfc8785.dumps(json.loads(text, parse_int=float)) == rfc8785.dumps(value)
    assert len(text) == len(rfc8785.dumps(value))


@given(exact_values)
def test_pack_fast_paths_write_what_the_exact_path_writes(value: Any) -> None:
    assert encode(value, Profile.PACK) == _Writer(Profile.PACK).write(value)


@given(plain_values)
def test_a_document_parsed_as_plain_is_written_as_the_exact_path_writes_it(value: Any) -> None:
    document = parse(as_text(value, ensure_ascii=False, separators=(",", ":")))
    assert encode(document.value, plain=document.plain) == _Writer(Profile.PACK).write(value)


@given(double_values)
def test_jcs_fast_path_writes_what_the_exact_path_writes(value: Any) -> None:
    assert encode(value, Profile.JCS) == _Writer(Profile.JCS).write(value)


@given(st.dictionaries(texts, st.integers() | texts), st.randoms())
@requirement("6.1:key-order")
def test_key_order_does_not_change_args_hash(args: dict[str, Any], random: Any) -> None:
    """Pack 6.1."""
    items = list(args.items())
    random.shuffle(items)
    assert args_hash(dict(items)) == args_hash(args)


@given(exact_values, exact_values)
def test_equal_bytes_mean_equal_values(left: Any, right: Any) -> None:
    """Two different arguments never share a hash (canonical-profiles)."""
    assert (encode(left) == encode(right)) == (tagged(left) == tagged(right))


def tagged(value: Any) -> Any:
    """A value in which True is not 1, while 1 is 1.0. A float stands for its shortest decimal."""
    if isinstance(value, dict):
        return {key: tagged(member) for key, member in value.items()}
    if isinstance(value, list):
        return [tagged(member) for member in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return (type(value).__name__, value)
    return ("number", Decimal(repr(value)) if isinstance(value, float) else Decimal(value))


@given(exact_values)
def test_pack_reads_back_as_it_was_written(value: Any) -> None:
    text = encode(value)
    document = parse(text)
    assert encode(document.value, plain=document.plain) == text


@given(texts)
def test_jcs_nfc_is_jcs_of_the_normalised_text(text: str) -> None:
    normal = unicodedata.normalize("NFC", text)
    assert encode([text], Profile.JCS_NFC) == encode([normal], Profile.JCS)


def test_missing_arguments_hash_as_an_empty_object() -> None:
    assert args_hash(None) == args_hash({}) == hashlib.sha256(b"{}").hexdigest()


def test_digest_uses_the_given_profile() -> None:
    value = {"\ufb33": 1, "\U0001f600": 2}
    assert digest(value, Profile.JCS) == hashlib.sha256(rfc8785.dumps(value)).hexdigest()
    assert digest(value, Profile.JCS) != digest(value)


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize(
    ("value", "says"),
    [
        (float("nan"), "NaN and Infinity"),
        ([float("inf")], "NaN and Infinity"),
        ({"a": Decimal("-Infinity")}, "NaN and Infinity"),
        (Decimal("sNaN"), "NaN and Infinity"),
        ("\ud800", "lone surrogate"),
        ({"\udfff": 1}, "lone surrogate"),
        ({"\udfff": 1.5}, "lone surrogate"),
        (["\ud800", 1.5], "lone surrogate"),
        (("\ud800",), "lone surrogate"),
        (({"\udfff": 1},), "lone surrogate"),
        ({1: "a"}, "a key is not a string"),
        ({"a": object()}, "a value of type `object` is not JSON"),
        ({"a": b"bytes"}, "a value of type `bytes` is not JSON"),
        pytest.param(10**5000, "too many digits", id="10**5000"),
    ],
)
def test_values_that_are_not_json_are_refused_in_every_profile(
    value: Any, says: str, profile: Profile
) -> None:
    with pytest.raises(AmbiguousJSON, match=says):
        encode(value, profile)


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("leaf", [1, 1.5, "ä"])
def test_depth_is_bounded_at_the_same_place_on_every_path(profile: Profile, leaf: Any) -> None:
    value = leaf
    for _ in range(MAX_DEPTH):
        value = [value]
    assert encode(value, profile).startswith(b"[" * MAX_DEPTH)
    for deeper in ([value], {"a": value}):
        with pytest.raises(AmbiguousJSON, match="nested deeper than 512"):
            encode(deeper, profile)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(AmbiguousJSON, match="nested deeper"):
        encode(loop)


class Colour(StrEnum):
    RED = "red"


def test_subclasses_of_json_types_are_written_like_their_base() -> None:
    assert encode({"colour": Colour.RED, "pair": (1, 2.0)}) == b'{"colour":"red","pair":[1,2]}'


@pytest.mark.parametrize("value", [2**53 + 1, [10**21 + 1], {"id": -(2**64)}], ids=repr)
def test_jcs_refuses_an_integer_that_a_double_would_change(value: Any) -> None:
    with pytest.raises(AmbiguousJSON, match="as a double without changing it") as refused:
        encode(value, Profile.JCS)
    assert "profile `pack`" in (refused.value.hint or "")


def test_keys_that_become_equal_by_normalisation_are_refused() -> None:
    with pytest.raises(AmbiguousJSON, match="duplicate key"):
        encode({"e\u0301": 1, "\u00e9": 2}, Profile.JCS_NFC)


@pytest.mark.parametrize("first", [1, 0.5, (1,)], ids=["plain", "prepared", "exact"])
def test_shared_lists_that_stand_for_too_many_values_are_refused(first: Any) -> None:
    """Forty nested lists that share their members stand for 2^40 values, on each of three paths."""
    value: Any = [{}]
    for _ in range(40):
        value = [value, value]
    with pytest.raises(AmbiguousJSON, match="more than 4194304 values"):
        encode([first, value], Profile.JCS_NFC)
