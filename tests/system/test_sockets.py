"""A path of any length fits into the address of a socket."""

import os
import socket

import pytest

from subluminal.system import sockets
from subluminal.system.sockets import MAX_ADDRESS_BYTES, ShortAddress


@pytest.mark.parametrize("linux", [True, False], ids=["linux", "plain"])
def test_a_long_path_is_reached_through_its_directory(tmp_path, linux, monkeypatch):
    monkeypatch.setattr(sockets, "LINUX", linux)
    monkeypatch.setenv("TMPDIR", str(tmp_path.parent))
    directory = tmp_path / ("d" * 80) / ("e" * 80)
    directory.mkdir(parents=True)
    path = str(directory / "s.sock")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        with ShortAddress(path) as address:
            assert len(os.fsencode(address)) <= MAX_ADDRESS_BYTES
            server.bind(address)
        server.listen()
        with ShortAddress(path) as address:
            client.connect(address)
    assert os.listdir(directory) == ["s.sock"]
    assert not os.path.lexists(address)


def test_a_short_path_is_its_own_address():
    with ShortAddress("/tmp/s.sock") as address:
        assert address == "/tmp/s.sock"
