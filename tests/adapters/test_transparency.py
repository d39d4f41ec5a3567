"""Without a policy the shim is a pipe: each side receives what the other sent."""

import pytest
from tests.adapters.streams import cut, stream
from tests.adapters.wire import upstream
from tests.requirements import requirement

from subluminal.adapters.mcp_stdio.client_lines import LargeLine, LineSplitter, Spool


def both_ways(wire, tmp_path, *, client, server, seed=0, chunk=65536, read=True, shimmed=True):
    """Sends and plays back at once; returns what each side got."""
    log, playback = tmp_path / f"log{shimmed}", tmp_path / "playback"
    playback.write_bytes(server)
    started = wire(upstream("recorder", log, playback, chunk), shimmed=shimmed)
    for piece in cut(seed, client):
        started.send(piece, read=read)
    assert started.finish() == 0
    return started, log.read_bytes()


@requirement("001-7.1:transparent")
@requirement("1.10:forward-all")
@pytest.mark.parametrize("seed", range(6))
def test_generated_and_mutated_streams_pass_unchanged(wire, tmp_path, seed):
    client, server = stream(seed, 150), stream(seed + 1_000, 150)
    started, seen = both_ways(wire, tmp_path, client=client, server=server, seed=seed, chunk=911)
    assert seen == client
    assert started.received == server
    started.events()


@pytest.mark.parametrize("seed", [77, 78])
def test_with_huge_lines_among_them(wire, tmp_path, seed):
    client, server = stream(seed, 40, huge=True), stream(seed + 1_000, 40, huge=True)
    started, seen = both_ways(wire, tmp_path, client=client, server=server, seed=seed)
    assert seen == client
    assert started.received == server
    started.events()


def test_the_bare_server_gives_the_same(wire, tmp_path):
    """The baseline of these tests: the same programs without a shim between them."""
    client, server = stream(3, 100), stream(4, 100)
    started, seen = both_ways(wire, tmp_path, client=client, server=server, shimmed=False)
    assert (seen, started.received) == (client, server)


@requirement("001-7.1:transparent")
@pytest.mark.parametrize("client", [b"", b"\n", b"\r\n\r\n", b"{", b"x", b'{"id":1}'])
def test_streams_that_are_hardly_there(wire, tmp_path, client):
    started, seen = both_ways(wire, tmp_path, client=client, server=b"half a line")
    assert seen == client
    assert started.received == b"half a line"


def test_a_client_that_writes_much_before_it_reads_anything(wire, tmp_path):
    """The server here reads while its own output waits, as a server in Node does."""
    client, server = stream(5, 9_000), stream(6, 9_000)
    assert min(len(client), len(server)) > 1_500_000
    started, seen = both_ways(wire, tmp_path, client=client, server=server, read=False)
    assert seen == client
    assert started.received == server
    started.events()


def test_a_server_that_says_much_before_it_reads_anything(wire, tmp_path):
    log, playback = tmp_path / "log", tmp_path / "playback"
    playback.write_bytes(stream(8, 9_000))
    started = wire(upstream("talker", log, playback))
    client = stream(9, 9_000)
    started.send(client)
    assert started.finish() == 0
    assert log.read_bytes() == client
    assert started.received == playback.read_bytes()


def test_a_server_that_reads_slowly_after_the_client_has_left_gets_all(wire, tmp_path):
    log, playback = tmp_path / "log", tmp_path / "playback"
    playback.write_bytes(b"")
    client = stream(11, 4_000)
    started = wire(upstream("sipper", log))
    started.send(client)
    assert started.finish() == 0
    assert log.read_bytes() == client


def test_every_byte_boundary(tmp_path):
    """The splitter alone, because a kernel may put two writes together again."""
    data = stream(12, 7) + b"y" * 300 + b"\n" + b'{"jsonrpc":"2.0","id":1}\n'
    for at in range(len(data)):
        splitter = LineSplitter(250, lambda: Spool(str(tmp_path), 1_000))
        lines = [*splitter.feed(data[:at]), *splitter.feed(data[at:]), *splitter.finish()]
        assert b"".join(_text(line) for line in lines) == data


def _text(line):
    if not isinstance(line, LargeLine):
        return line
    text = line.spool.read(1_000)
    line.spool.close()
    return text
