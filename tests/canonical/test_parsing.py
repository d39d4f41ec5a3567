"""`parse`: nothing that two parsers may read differently gets past it, on either path."""

import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.canonical.values import as_text, double_values, texts

from subluminal.canonical import MAX_DEPTH, AmbiguousJSON, args_hash, encode, may_be_plain, parse
from subluminal.canonical.parsing import _encode, _parse_exactly


@given(double_values, st.booleans(), st.sampled_from([None, 1]))
def test_text_of_the_standard_library_reads_as_it_was(
    value: Any, ascii_only: bool, indent: int | None
) -> None:
    text = as_text(value, ensure_ascii=ascii_only, indent=indent)
    assert encode(parse(text).value) == encode(value)


class Pairs(list[tuple[str, Any]]):
    """An object as it was written: duplicate keys and all."""


written_objects = st.recursive(
    st.integers(-(10**22), 10**22) | st.booleans() | texts | st.floats(-1e9, 1e9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(st.tuples(st.sampled_from(["", "a", "aa", "é", "/", "\b"]) | texts, inner)).map(
            Pairs
        )
    ),
    max_leaves=12,
)


def has_duplicates(value: Any) -> bool:
    if isinstance(value, Pairs):
        names = [name for name, _ in value]
        return len(set(names)) < len(names) or any(has_duplicates(member) for _, member in value)
    return isinstance(value, list) and any(map(has_duplicates, value))


def spell(value: Any, draw: Any) -> str:
    """Writes a value as an adversary would: with any spacing, any escapes, any digits."""
    gap = draw(st.sampled_from(["", "", "", " ", "\n\t", "\r" * 7]))
    if isinstance(value, Pairs):
        members = [f"{spell(name, draw)}{gap}:{spell(member, draw)}" for name, member in value]
        return "{" + f"{gap},".join(members) + gap + "}"
    if isinstance(value, list):
        return "[" + f",{gap}".join(spell(member, draw) for member in value) + gap + "]"
    if isinstance(value, str):
        return '"' + "".join(spell_character(character, draw) for character in value) + '"'
    return json.dumps(value)


def spell_character(character: str, draw: Any) -> str:
    quoted = json.dumps(character, ensure_ascii=False)[1:-1]
    units = character.encode("utf-16-be").hex()
    escaped = "".join(rf"\u{units[at : at + 4]}" for at in range(0, len(units), 4))
    return str(draw(st.sampled_from([quoted, quoted, escaped, escaped.upper().replace("U", "u")])))


@given(written_objects, st.data())
def test_no_spelling_lets_a_duplicate_key_through(value: Any, data: st.DataObject) -> None:
    """The length proof of the fast path is attacked with every spelling that JSON has."""
    text = spell(value, data.draw).encode()
    if not has_duplicates(value):
        parse(text)
        return
    with pytest.raises(AmbiguousJSON, match="duplicate key"):
        parse(text)


@given(
    st.binary(max_size=40)
    | st.text('{}[]":,\\ u0061a1-.eE\ttrue\x7fé', max_size=40).map(str.encode)
)
@example(b'{"a":1,"a":\t1}')
@example(b'{"a":"\x7f","a":"\\u007f"}')
def test_the_fast_path_accepts_nothing_that_the_exact_path_refuses(text: bytes) -> None:
    try:
        document = parse(text)
    except AmbiguousJSON:
        with pytest.raises(AmbiguousJSON):
            _parse_exactly(text)
    else:
        assert encode(_parse_exactly(text)) == encode(document.value, plain=document.plain)


def test_encoding_again_never_grows_what_the_fast_path_reads() -> None:
    """The premise of the length proof, for every character and every escape of two bytes."""
    decode = msgspec.json.Decoder().decode
    spellings = [chr(code).encode("utf-8", "surrogatepass") for code in range(0x11000)]
    spellings += [rb"\u%04x" % code for code in range(0x10000)]
    spellings += [b"\\" + bytes([byte]) for byte in range(256)]
    grown = []
    for spelling in spellings:
        try:
            again = _encode(decode(b'"' + spelling + b'"'))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if len(again) > len(spelling) + 2:
            grown.append(spelling)
    assert grown == []


def test_ordinary_arguments_take_the_fast_path() -> None:
    assert parse(b'{"path":"/tmp/a","lines":[1,2],"id":123456789012345678901}').plain
    assert not parse(b'{"x":1.5}').plain
    assert not parse(b'{"a": 1}').plain


@pytest.mark.parametrize("opener", ["[", '{"a":'])
def test_depth_is_bounded(opener: str) -> None:
    closer = "]" if opener == "[" else "}"
    at_limit = opener * MAX_DEPTH + "1" + closer * MAX_DEPTH
    assert parse(at_limit.encode()).value
    for depth in (MAX_DEPTH + 1, 10_000):
        with pytest.raises(AmbiguousJSON, match="nested deeper than 512 levels"):
            parse((opener * depth + "1" + closer * depth).encode())


def test_brackets_in_strings_are_not_depth() -> None:
    text = json.dumps(["[" * 10_000, '{"\\"[', "]"]).encode()
    assert parse(text).value == ["[" * 10_000, '{"\\"[', "]"]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (b'{"a":[1,2]}', True),
        (b"[" * 512 + b"]" * 512, True),
        (b"[" * 513 + b"]" * 513, False),
        (b'"' + b"x" * 2_000 + b'"', True),
        (b"[" + b"9" * 21 + b"]", True),
        (b"[" + b"9" * 22 + b"]", False),
    ],
)
def test_which_texts_may_take_the_fast_path(text: bytes, plain: bool) -> None:
    assert may_be_plain(text) is plain


def test_brackets_in_one_string_are_not_depth() -> None:
    assert parse(b'"' + b"[{" * 2_000 + b'"').plain


def test_a_value_at_the_depth_limit_with_many_containers_is_plain() -> None:
    most = b"[" * 511 + b"]" * 511
    assert parse(b"[" + b"[]," * 600 + most + b"]").plain
    with pytest.raises(AmbiguousJSON, match="deeper"):
        parse(b"[" + b"[]," * 600 + b"[" + most + b"]]")


def test_many_shallow_containers_are_not_deep() -> None:
    assert parse(b"[" + b",".join([b"[]"] * 2_000) + b"]").value == [[]] * 2_000


def _seconds(text: bytes) -> float:
    begun = time.thread_time()
    with pytest.raises(AmbiguousJSON):
        parse(text)
    return time.thread_time() - begun


def test_a_string_that_never_ends_takes_linear_time() -> None:
    """linear-patterns: eight times the text takes far less than the 64 times that a quadratic scan would."""
    openings = b"[" + b"[]," * 600 + b'"'
    small = min(_seconds(openings + b'\\"' * 20_000) for _ in range(5))
    large = min(_seconds(openings + b'\\"' * 160_000) for _ in range(5))
    assert large < 30 * small


def test_fifty_megabytes_in_one_string() -> None:
    text = b'{"content":"' + b"x" * 50_000_000 + b'"}'
    document = parse(text)
    assert document.plain
    assert encode(document.value, plain=True) == text


def test_fifty_megabytes_on_the_exact_path() -> None:
    row = b'{"n":[0.10,-0,1E400,9007199254740993],"blob":"' + b"x" * 50_000 + b'\\u00e9"}'
    text = b"[" + b",".join([row] * 1_000) + b"]"
    assert len(text) > 50_000_000
    written = encode(parse(text).value)
    end = 'x\u00e9","n":[0.1,0,1e+400,9007199254740993]}]'
    assert written.endswith(end.encode())


def test_an_error_says_where() -> None:
    with pytest.raises(AmbiguousJSON, match="not JSON: expecting value at line 2 column 5"):
        parse(b'{\n"a":}')
    with pytest.raises(AmbiguousJSON, match="invalid control character at line 1 column 2"):
        parse(b'"\t"')
    with pytest.raises(AmbiguousJSON, match="byte 1 is not UTF-8"):
        parse(b'"\xff"')


def test_an_integer_with_too_many_digits_is_refused() -> None:
    with pytest.raises(AmbiguousJSON, match="too many digits"):
        parse(b"1" * 5_000)


def test_a_parsed_value_can_always_be_hashed() -> None:
    """What `parse` accepts has an args_hash: the shim need not think of a second refusal."""
    for text in (b'{"a":123456789.5e999999999999999}', b'{"a":1e-999999999999999}'):
        document = parse(text)
        assert len(args_hash(document.value, plain=document.plain)) == 64
