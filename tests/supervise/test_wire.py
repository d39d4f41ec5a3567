"""Orders and reports pass through a pipe unchanged, wherever their bytes are split."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subluminal.supervise.wire import (
    Frames,
    Report,
    Signal,
    Spawn,
    Stop,
    decode_order,
    decode_report,
    encode_order,
    encode_report,
)

no_nul = st.binary().map(lambda b: b.replace(b"\0", b""))
names = no_nul.map(lambda b: b.replace(b"=", b"")).filter(len)
text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
maybe_number = st.none() | st.integers(0, 2**31)


def fields(order):
    return {name: getattr(order, name) for name in type(order).__slots__}


@given(st.lists(no_nul, min_size=1), st.dictionaries(names, no_nul), no_nul, st.lists(no_nul))
def test_a_spawn_order_arrives_as_given(argv, env, cwd, after_death):
    order = Spawn(argv, env, cwd, 2000, after_death)
    (frame,) = Frames().feed(encode_order(order))
    assert fields(decode_order(frame)) == fields(order)


@pytest.mark.parametrize("order", [Stop(None), Stop(0), Stop(1500), Signal(2)])
def test_a_short_order_arrives_as_given(order):
    (frame,) = Frames().feed(encode_order(order))
    assert fields(decode_order(frame)) == fields(order)


@given(
    st.lists(
        st.builds(Report, st.just("exited"), st.integers(0), maybe_number, maybe_number, text)
    ),
    st.integers(1, 9),
)
def test_reports_arrive_in_pieces_of_any_size(reports, size):
    sent = b"".join(encode_report(report) for report in reports)
    frames = Frames()
    pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
    got = [decode_report(frame) for piece in pieces for frame in frames.feed(piece)]
    assert got == reports


def test_a_report_reads_like_a_named_tuple():
    report = Report("exited", 7, None, 9, "why")
    kind, pid, exit_code, number, detail = report
    assert (report.kind, report.pid, report.exit_code) == (kind, pid, exit_code)
    assert (report.signal, report.detail) == (number, detail)
    assert repr(report) == "Report('exited', 7, None, 9, 'why')"


@pytest.mark.parametrize(
    "order",
    [
        Spawn([b"a\0b"], {}, b"", 0, []),
        Spawn([b"a"], {b"K": b"\0"}, b"", 0, []),
        Spawn([b"a"], {}, b"\0", 0, []),
    ],
    ids=["argument", "variable", "directory"],
)
def test_a_nul_is_refused_before_it_can_shift_the_fields(order):
    with pytest.raises(ValueError, match="NUL"):
        encode_order(order)
