"""Whatever the bytes, loading a bundle gives a bundle or problems: never another exception."""

from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.bundles import EFFECTS, plain, rule, text

from subluminal.contracts.bundle import Bundle
from subluminal.errors import InvalidInput
from subluminal.policy.casefile import parse_cases
from subluminal.policy.checking import semantic_misfits
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.lint.linting import lint
from subluminal.policy.loading import LoadedBundle, parse_bundle

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "policies").glob("*.yaml"))
SEEDS = [path.read_bytes() for path in EXAMPLES] + [text(rule(kind)) for kind in EFFECTS]
PIECES = [
    b"*", b"&a", b"*a", b"!x", b"<<:", b"---\n", b"...\n", b"\t", b"\n", b"  ", b"- ", b"? ", b": ", b"{", b"}", b"[", b"]",
    b'"', b"'", b"|", b">", b"%YAML 1.1\n", b"\x00", b"\xff", b"\xef\xbb\xbf", b"null", b"1e999", b".nan", b"-1", b"0o17",
    b"\xe2\x80\xa8", b"#", b",", b"true", b"NO", b"9" * 500, b"(?=", b"[!", b"\\ud800", b"\r", b"\xf0\x9f\x98\x80",
]  # fmt: skip


def check(data: bytes) -> None:
    """Loads; InvalidInput is the only way not to."""
    with suppress(InvalidInput):
        use(parse_bundle(data, "f"))


def use(loaded: LoadedBundle) -> None:
    """What was loaded can be linted and compiled: nothing in it is left to be refused later."""
    assert semantic_misfits(loaded.bundle) == []
    lint(loaded)
    compile_bundle(loaded.bundle)


@given(st.binary(max_size=200))
@settings(max_examples=300)
def test_any_bytes_are_loaded_or_refused(data):
    check(data)


mutations = st.lists(
    st.tuples(
        st.integers(0, 10_000),
        st.integers(0, 12),
        st.one_of(st.sampled_from(PIECES), st.binary(max_size=3)),
    ),
    min_size=1,
    max_size=4,
)


@given(st.sampled_from(SEEDS), mutations)
@settings(max_examples=600)
def test_a_damaged_bundle_is_loaded_whole_or_refused(seed, changes):
    data = bytearray(seed)
    for position, length, piece in changes:
        start = position % (len(data) + 1)
        data[start : start + length] = piece
    check(bytes(data))
    with suppress(InvalidInput):
        parse_cases(bytes(data), "f")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@st.composite
def wrong_bundles(draw):
    """A bundle in which one value somewhere is replaced by another."""
    value = plain(
        *[rule(kind) for kind in draw(st.lists(st.sampled_from(list(EFFECTS)), max_size=3))]
    )
    where = value
    for _ in range(draw(st.integers(0, 5))):
        keys = list(where) if isinstance(where, dict) else list(range(len(where)))
        inner = [key for key in keys if isinstance(where[key], dict | list) and where[key]]
        if not inner:
            break
        where = where[draw(st.sampled_from(inner))]
    if where:
        keys = list(where) if isinstance(where, dict) else list(range(len(where)))
        where[draw(st.sampled_from(keys))] = draw(json_values)
    return value


@given(wrong_bundles())
@settings(max_examples=400)
def test_a_bundle_with_a_wrong_value_is_loaded_or_refused(value):
    check(msgspec.json.encode(value))


@given(wrong_bundles())
@settings(max_examples=200)
def test_the_loader_refuses_whatever_the_types_refuse(value):
    """Never silently weaker: what the strict decoder does not take, the loader does not either."""
    data = msgspec.json.encode(value)
    try:
        msgspec.json.decode(data, type=Bundle)
    except msgspec.ValidationError:
        with pytest.raises(InvalidInput):
            parse_bundle(data, "f")
