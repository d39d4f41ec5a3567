"""The client's bytes as lines: the same bytes, wherever they are cut, and on disk when large."""

import os

from hypothesis import given
from hypothesis import strategies as st

from subluminal.adapters.mcp_stdio.client_lines import LargeLine, LineSplitter, Spool


def taken(splitter, chunks):
    found = [line for chunk in chunks for line in splitter.feed(chunk)]
    return found + list(splitter.finish())


def text_of(line):
    if isinstance(line, bytes):
        return line
    text = b""
    while piece := line.spool.read(7):
        text += piece
    line.spool.close()
    return text


@given(st.binary(max_size=200), st.integers(1, 60), st.integers(1, 50))
def test_lines_put_together_are_what_was_read(tmp_path_factory, data, size, max_bytes):
    place = str(tmp_path_factory.getbasetemp() / "spool")
    splitter = LineSplitter(max_bytes, lambda: Spool(place, 1_000))
    lines = taken(splitter, [data[at : at + size] for at in range(0, len(data), size)])
    texts = [text_of(line) for line in lines]
    assert b"".join(texts) == data
    assert all(text.count(b"\n") <= 1 for text in texts)
    for line, text in zip(lines, texts, strict=True):
        # Until its newline comes, one byte past the bound may be that newline.
        assert isinstance(line, LargeLine) == (len(text) > max_bytes + 1)
        if isinstance(line, LargeLine):
            assert line.size == len(text.removesuffix(b"\n"))


def test_a_message_of_exactly_the_bound_is_inspected(tmp_path):
    splitter = LineSplitter(10, lambda: Spool(str(tmp_path), 1_000))
    lines = taken(splitter, [b"0123456789\n0123456789a\n"])
    assert lines[0] == b"0123456789\n"
    assert isinstance(lines[1], LargeLine)


def test_a_line_too_large_for_the_disk_is_known_to_be_lost(tmp_path):
    splitter = LineSplitter(10, lambda: Spool(str(tmp_path), 50))
    (line,) = taken(splitter, [b'{"id":4,"x":"', b"y" * 100, b'"}\n'])
    message = line.message()
    assert line.overflowed
    assert (message.is_lost, message.id, line.size) == (True, 4, 115)
    assert "max_spool_bytes" in message.problem


def test_a_disk_that_takes_nothing_loses_the_line_and_nothing_else(tmp_path, monkeypatch):
    def refuse(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    splitter = LineSplitter(10, lambda: Spool(str(tmp_path), 1_000))
    lines = taken(splitter, [b"x" * 20 + b"\nnext\n"])
    assert lines[0].overflowed
    assert lines[1] == b"next\n"


def test_a_spool_has_no_name_and_no_descriptor_after_close(tmp_path):
    before = os.listdir("/proc/self/fd")
    spool = Spool(str(tmp_path), 1_000)
    spool.append(b"abc")
    spool.append(b"def")
    assert os.listdir(tmp_path) == []
    assert (spool.read(4), spool.read(4), spool.read(4)) == (b"abcd", b"ef", b"")
    spool.close()
    spool.close()
    assert os.listdir("/proc/self/fd") == before
