"""The seals of a journal: where it comes from, and that it was not changed (provable-ledger)."""

from hypothesis import given
from hypothesis import strategies as st

from subluminal.journal.seals import beginning, has_seal_of, sealed

KEY, OTHER = b"k" * 32, b"o" * 32
PREV = b"ab" * 32
LINE = b'{"type":"run_end","run_id":"r","source":{"shim_id":"s","n":7,"prev":"%b"},"x":%b}'


def seal_in(line: bytes) -> bytes:
    return line.partition(b'"seal":"')[2].partition(b'"')[0]


def test_a_beginning_is_of_one_key_run_and_shim() -> None:
    known = beginning(KEY, "run", "shim")
    assert len(known) == 64
    assert known == beginning(KEY, "run", "shim")
    others = {
        beginning(OTHER, "run", "shim"),
        beginning(KEY, "other", "shim"),
        beginning(KEY, "run", "other"),
        beginning(KEY, "runs", "him"),
        beginning(KEY, "\udc80", "shim"),
    }
    assert len(others - {known}) == 5


@given(st.text())
def test_a_seal_covers_every_byte_of_its_line(text: str) -> None:
    line = LINE % (PREV, repr(text).encode("utf-8", "backslashreplace"))
    made = sealed(KEY, line, PREV)
    seal = seal_in(made)
    assert len(made) == len(line) + len(b',"seal":""') + 64
    assert has_seal_of(KEY, made, PREV, seal)
    assert not has_seal_of(OTHER, made, PREV, seal)
    assert not has_seal_of(KEY, made.replace(b'"n":7', b'"n":8'), PREV, seal)
    assert not has_seal_of(KEY, made + b" ", PREV, seal)
    other = b"cd" * 32
    assert not has_seal_of(KEY, made.replace(PREV, other), other, seal)


def test_a_text_that_looks_like_a_seal_is_not_one() -> None:
    """Quotes inside of a text are escaped, so the first match is in `source`."""
    line = LINE % (PREV, b'"\\"prev\\":\\"%b\\""' % PREV)
    made = sealed(KEY, line, PREV)
    assert made.index(b',"seal":"') < made.index(b'"x":')
    assert has_seal_of(KEY, made, PREV, seal_in(made))
