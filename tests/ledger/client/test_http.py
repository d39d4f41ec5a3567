"""Requests to ledgerd, against a server that answers what the test says."""

import socket
import threading

import pytest

from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.ledger.client.http import Client, DaemonUnavailable, quoted


@pytest.fixture
def answering(tmp_path):
    """Serves one fixed answer, and keeps what it was sent."""
    made = Places(str(tmp_path), str(tmp_path / "run"))
    (tmp_path / "run").mkdir()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(made.ledgerd_socket)
    listener.listen()
    threads = []

    def start(answer):
        received = []

        def serve():
            connection, _ = listener.accept()
            with connection:
                data = b""
                while b"\r\n\r\n" not in data:
                    data += connection.recv(65_536)
                received.append(data)
                connection.sendall(answer)

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        return Client(made), received

    yield start
    for thread in threads:
        thread.join(20)
    listener.close()


def answer(status, body):
    return b"HTTP/1.1 %d Word\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body)


def test_a_resource_is_decoded(answering):
    client, received = answering(answer(200, b'{"a":1}'))
    assert client.get("/v1/x", {"where": "a b&c", "limit": 5, "cursor": None}) == {"a": 1}
    assert received[0].startswith(b"GET /v1/x?where=a%20b%26c&limit=5 HTTP/1.1\r\n")


def test_a_missing_resource_is_none_or_an_error(answering):
    missing = answer(404, b'{"error":"there is no run","hint":"look"}')
    assert answering(missing)[0].find("/v1/runs/x") is None
    with pytest.raises(SubluminalError, match="there is no run") as caught:
        answering(missing)[0].get("/v1/runs/x")
    assert caught.value.hint == "look"


def test_lines_are_posted_with_their_length(answering):
    client, received = answering(answer(200, b'{"stored":1}'))
    assert client.post("/v1/events", b"{}\n") == {"stored": 1}
    assert b"\r\nContent-Length: 3\r\n" in received[0]


@pytest.mark.parametrize(
    "cut", [b"", b"HTTP/1.1", b"HTTP/1.1 200 OK\r\n\r\n", b"nonsense\r\n\r\n{}"]
)
def test_an_answer_that_is_cut_off_is_no_answer(answering, cut):
    with pytest.raises(DaemonUnavailable, match="ledgerd does not answer"):
        answering(cut)[0].get("/v1/status")


def test_a_socket_that_nobody_listens_on(tmp_path):
    client = Client(Places(str(tmp_path), str(tmp_path)))
    assert not client.answers()
    with pytest.raises(DaemonUnavailable):
        client.get("/v1/status")


def test_every_reserved_character_is_quoted():
    assert quoted("a/b?c=d&é") == "a%2Fb%3Fc%3Dd%26%C3%A9"
