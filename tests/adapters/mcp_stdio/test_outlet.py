"""Outlets write in order, never block, and never put our lines inside the server's."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subluminal.adapters.mcp_stdio.outlet import ClientOutlet, Outlet


class Source:
    """Something that is streamed."""

    def __init__(self, data):
        self.data, self.size, self.closed = data, len(data), False

    def read(self, size):
        piece, self.data = self.data[:size], self.data[size:]
        return piece

    def close(self):
        self.closed = True


@pytest.fixture
def pipe():
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    yield reader, writer
    for fd in (reader, writer):
        try:
            os.close(fd)
        except OSError:
            continue


def drained(outlet, reader):
    text = b""
    while True:
        outlet.drain()
        try:
            text += os.read(reader, 1 << 20)
        except BlockingIOError:
            assert not outlet.busy
            return text


def test_what_a_full_pipe_does_not_take_waits_in_order(pipe):
    reader, writer = pipe
    outlet = Outlet(writer)
    parts = [bytes([65 + n]) * 50_000 for n in range(5)]
    stream = Source(b"z" * 300_000)
    for part in parts:
        outlet.send(part)
    outlet.stream(stream)
    outlet.send(b"end")
    assert outlet.busy
    assert outlet.waiting > 400_000, "a stream counts as waiting"
    assert drained(outlet, reader) == b"".join(parts) + b"z" * 300_000 + b"end"
    assert (outlet.waiting, outlet.busy, stream.closed) == (0, False, True)


def test_without_a_reader_nothing_waits_and_nothing_leaks(pipe):
    reader, writer = pipe
    outlet = Outlet(writer)
    streams = [Source(b"z" * 300_000), Source(b"z")]
    outlet.stream(streams[0])
    os.close(reader)
    outlet.drain()
    outlet.send(b"more")
    outlet.stream(streams[1])
    assert outlet.broken
    assert [each.closed for each in streams] == [True, True]
    assert (outlet.waiting, outlet.busy) == (0, False)


def test_the_oldest_goes_first_where_a_bound_is_kept(pipe):
    reader, writer = pipe
    outlet = Outlet(writer)
    outlet.send(b"a" * 65_536)
    for n in range(10):
        outlet.send(bytes([48 + n]) * 1_000)
    assert outlet.drop_oldest(3_500) == 7_000
    assert drained(outlet, reader).lstrip(b"a") == b"7" * 1_000 + b"8" * 1_000 + b"9" * 1_000


PIECES = st.lists(
    st.one_of(
        st.binary(max_size=12).map(lambda data: ("server", data)),
        st.integers(0, 9).map(lambda n: ("ours", b'{"ours":%d}\n' % n)),
    ),
    max_size=20,
)


@given(PIECES)
def test_our_lines_stand_between_the_servers_lines_and_change_none_of_them(pieces):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)
    outlet = ClientOutlet(writer)
    for whose, data in pieces:
        if whose == "server":
            if data:
                outlet.forward(data)
        else:
            outlet.inject(data)
    outlet.server_ended()
    text = drained(outlet, reader)
    os.close(reader)
    os.close(writer)
    server = b"".join(data for whose, data in pieces if whose == "server")
    ours = [data for whose, data in pieces if whose == "ours"]
    lines = text.split(b"\n")
    assert [line + b"\n" for line in lines if line.startswith(b'{"ours":')] == ours
    rest = [line for line in lines if not line.startswith(b'{"ours":')]
    left = b"\n".join(rest)
    # Where the server never ended its last line, we end it for it.
    assert left in (server, server + b"\n")
    assert outlet.waiting == 0


def test_with_nothing_of_ours_the_servers_bytes_are_untouched_even_half_lines(pipe):
    reader, writer = pipe
    outlet = ClientOutlet(writer)
    for data in (b"half", b" a line\nand ", b"more"):
        outlet.forward(data)
    outlet.server_ended()
    assert drained(outlet, reader) == b"half a line\nand more"


def test_a_refusal_after_the_servers_unfinished_last_line_still_comes_out(pipe):
    reader, writer = pipe
    outlet = ClientOutlet(writer)
    outlet.forward(b'{"half":')
    outlet.server_ended()
    outlet.inject(b'{"ours":1}\n')
    assert drained(outlet, reader) == b'{"half":\n{"ours":1}\n'


def test_held_lines_count_as_waiting(pipe):
    _, writer = pipe
    outlet = ClientOutlet(writer)
    outlet.forward(b"half")
    outlet.inject(b"x" * 100)
    assert outlet.waiting == 100
    outlet.forward(b"\n")
    assert outlet.waiting == 0
