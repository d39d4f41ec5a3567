"""The first exchange before the loop: simple messages pass, others are left to the loop."""

import os

import pytest

from subluminal.adapters.mcp_stdio.greeting import Greeting, greet

INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\n'
ANSWER = b'{"jsonrpc":"2.0","id":0,"result":{}}\n'


class Pipes:
    """A client's two pipes and a server's two."""

    def __init__(self) -> None:
        self.stdin, self.client_in = os.pipe()
        self.client_out, self.stdout = os.pipe()
        self.server_reads, self.server_in = os.pipe()
        self.server_out, self.server_writes = os.pipe()
        for fd in (self.client_out, self.server_reads):
            os.set_blocking(fd, False)

    def greet(self, client: bytes, server: bytes) -> Greeting:
        if client:
            os.write(self.client_in, client)
        if server:
            os.write(self.server_writes, server)
        return greet(self.stdin, self.stdout, self.server_in, self.server_out)

    @property
    def to_server(self) -> bytes:
        return _read(self.server_reads)

    @property
    def to_client(self) -> bytes:
        return _read(self.client_out)

    def close(self) -> None:
        for fd in vars(self).values():
            os.close(fd)


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 1 << 20)
    except BlockingIOError:
        return b""


@pytest.fixture
def pipes():
    made = Pipes()
    yield made
    made.close()


def test_an_instant_answer_is_passed_on(pipes):
    assert pipes.greet(INITIALIZE, ANSWER) == Greeting(
        asked=True, answered=True, passed_on=INITIALIZE
    )
    assert (pipes.to_server, pipes.to_client) == (INITIALIZE, ANSWER)


def test_what_comes_after_it_is_left_to_the_loop(pipes):
    greeting = pipes.greet(INITIALIZE + b"more", b"half an answer")
    assert greeting == Greeting(True, True, b"more", b"half an answer", INITIALIZE)
    assert (pipes.to_server, pipes.to_client) == (INITIALIZE, b"")


def test_a_silent_server_is_not_waited_for(pipes):
    wanted = Greeting(asked=True, from_client=b"\n", passed_on=INITIALIZE)
    assert pipes.greet(INITIALIZE + b"\n", b"") == wanted


def test_without_a_client_nothing_is_read(pipes):
    assert pipes.greet(b"", ANSWER) == Greeting()
    assert _read(pipes.server_out) == ANSWER


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"tools\\/call","params":{"name":"x"}}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n',
        b'{"id":1,"method":"initialize","method":"tools/call"}\n',
        b'[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}]\n',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n',
        INITIALIZE[:-1],
        INITIALIZE.replace(b"{}", b'{"x":"' + b"x" * 5_000 + b'"}'),
    ],
)
def test_what_is_not_simple_is_left_to_the_loop(pipes, line):
    assert pipes.greet(line, b"") == Greeting(from_client=line)
    assert pipes.to_server == b""


def test_a_large_answer_is_left_to_the_loop(pipes):
    large = b"x" * 5_000 + b"\n"
    assert pipes.greet(INITIALIZE, large).from_server == large
    assert pipes.to_client == b""


def test_a_server_that_is_gone_is_the_loops_to_notice(pipes):
    os.close(pipes.server_reads)
    pipes.server_reads = os.open(os.devnull, os.O_RDONLY)
    assert pipes.greet(INITIALIZE, b"") == Greeting(from_client=INITIALIZE)
