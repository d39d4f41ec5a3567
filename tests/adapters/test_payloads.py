"""Lines of any size pass whole, in constant memory, and the record says what was not inspected."""

import contextlib
import hashlib
import json
import os
import select
from pathlib import Path

import pytest
from tests.adapters.records import calls_of
from tests.adapters.wire import upstream
from tests.processes import warden_of
from tests.requirements import requirement

MIB = 1 << 20
GROWTH_KIB = 16 * 1024
# `make torture` sets TORTURE; a gigabyte each way takes its time.
SIZES = [64 * MIB, 1024 * MIB] if os.environ.get("TORTURE") else [64 * MIB]


def memory_kib(pid: int) -> int:
    """The most memory that a process has used so far."""
    with contextlib.suppress(FileNotFoundError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1])
    return 0


def peak_kib(shim: int) -> int:
    """The same of a shim and its warden."""
    return memory_kib(shim) + memory_kib(warden_of(shim))


class Peer:
    """The client's side, without keeping what it reads."""

    def __init__(self, started) -> None:
        self.started = started
        self.fd_in, self.fd_out = started._in, started._out

    def send(self, head: bytes, size: int, tail: bytes) -> str:
        """Sends one line of `size` bytes between head and tail; returns the line's hash."""
        digest = hashlib.sha256()
        chunk = b"fedcba9876543210" * (65536 // 16)
        pieces = [head, *[None] * (size // len(chunk)), tail]
        for piece in pieces:
            data = chunk if piece is None else piece
            digest.update(data)
            self.started.send(data, read=False)
        return digest.hexdigest()

    def read(self) -> bytes:
        """Waits for the next bytes."""
        ready, _, _ = select.select([self.fd_out], [], [], 60)
        assert ready, "nothing comes any more"
        data = os.read(self.fd_out, 1 << 16)
        assert data, "the shim is gone"
        return data

    def receive(self) -> tuple[int, str]:
        """Reads one line; returns its size and hash."""
        digest, size = hashlib.sha256(), 0
        while True:
            data = self.read()
            end = data.endswith(b"\n")
            digest.update(data[:-1] if end else data)
            size += len(data) - end
            if end:
                return size, digest.hexdigest()


@requirement("001-7.1:bounded")
@requirement(
    "6.2:large-payload", "1.10:truncated", "1.10:no-preview", "1.10:metadata", "1.9.2:stream-hash"
)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.timeout(600)
def test_a_large_line_passes_whole_in_either_direction_and_in_constant_memory(wire, tmp_path, size):
    spoken = tmp_path / "spoken"
    config = f"[limits]\nmax_spool_bytes = {size + MIB}\n"
    started = wire(upstream("weigher", spoken), config=config)
    started.send(b'{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"warm"}}\n')
    started.raw_line()
    before = peak_kib(started.process.pid)

    peer = Peer(started)
    head = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"take","arguments":{"data":"'
    sent = peer.send(head, size, b'"}}}\n')
    weighed = started.line()["result"]
    assert weighed["sha256"] == sent
    assert weighed["size"] == size + len(head) + 5

    started.send(
        b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"say","arguments":{"bytes":%d}}}\n'
        % size
    )
    received, digest = peer.receive()
    assert digest == spoken.read_text()
    assert received > size
    assert peak_kib(started.process.pid) - before < GROWTH_KIB

    started.finish()
    _, took, said = calls_of(started.events())
    call = took[0]["call"]
    assert call["bytes_in"] == size + len(head) + 4
    assert call["preview"]["truncated"] is True
    assert call["preview"]["args_preview"] == "[TRUNCATED]"
    assert call["args_hash"] == call["args_stream_hash"]
    assert call["args_hash"] == _hash_of_args(size)
    assert took[2]["status"] == "OK"
    end = said[2]
    assert (end["status"], end["bytes_out"]) == ("OK", received)
    assert end["preview"]["truncated"] is True
    assert end["preview"]["result_preview"] == "[TRUNCATED]"
    assert end["result_stream_hash"] == digest


def _hash_of_args(size: int) -> str:
    digest = hashlib.sha256(b'{"data":"')
    for _ in range(size // 65536):
        digest.update(b"fedcba9876543210" * 4096)
    digest.update(b'"}')
    return digest.hexdigest()


def test_several_large_lines_do_not_pile_up(wire, tmp_path):
    """While one is on its way to the server, the client is not read for the next."""
    started = wire(upstream("weigher", tmp_path / "x"))
    peer = Peer(started)
    hashes = []
    for number in range(4):
        head = (
            b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","arguments":{"data":"'
            % number
        )
        hashes.append(peer.send(head, 4 * MIB, b'"}}}\n'))
    assert [started.line()["result"]["sha256"] for _ in hashes] == hashes
    started.finish()
    started.events()


def test_answers_that_wait_to_be_recorded_do_not_pile_up(wire, tmp_path):
    """No more of a result is kept than its record can use: without a pause, many results wait."""
    started = wire(upstream("weigher", tmp_path / "x"))
    started.send(b'{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"warm"}}\n')
    started.raw_line()
    before = peak_kib(started.process.pid)
    say = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"say","arguments":{"bytes":%d}}}\n'
    asked = b"".join(say % (number, 14 * 65536) for number in range(1, 61))
    started.send(asked, read=False)
    peer, lines, total = Peer(started), 0, 0
    while lines < 60:
        data = peer.read()
        lines += data.count(b"\n")
        total += len(data)
    assert peak_kib(started.process.pid) - before < GROWTH_KIB

    started.finish()
    ends = [call[2] for call in calls_of(started.events())][1:]
    assert {(end["status"], end["preview"]["truncated"]) for end in ends} == {("OK", True)}
    assert sum(end["bytes_out"] + 1 for end in ends) == total
    assert {len(end["preview"]["result_preview"]) for end in ends} == {16_384}


def test_a_line_too_large_for_the_disk_is_answered_and_the_stream_lives(wire, tmp_path):
    config = f"[limits]\nmax_spool_bytes = {2 * MIB}\n"
    started = wire(upstream("weigher", tmp_path / "x"), config=config)
    head = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"data":"'
    )
    Peer(started).send(head, 4 * MIB, b'"}}}\n')
    answer = started.line()
    assert answer["id"] == 1
    assert "max_spool_bytes" in answer["error"]["message"]
    started.send(b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}\n')
    assert started.line()["id"] == 2
    started.finish()
    lost, fine = calls_of(started.events())
    assert lost[1]["decision"]["action"] == "BLOCK"
    assert lost[0]["call"]["bytes_in"] == 4 * MIB + len(head) + 4
    assert fine[2]["status"] == "OK"


def test_a_large_call_is_denied_by_name(wire, tmp_path):
    from tests.adapters.policies import bundle, deny

    started = wire(upstream("weigher", tmp_path / "x"), policy=bundle(deny("rm")))
    for name in (b"rm", b"ok"):
        head = (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%b","arguments":{"data":"'
            % name
        )
        Peer(started).send(head, 2 * MIB, b'"}}}\n')
        answer = started.line()
        assert ("error" in answer) == (name == b"rm")
    assert json.dumps(answer)
    started.finish()
    assert [call[1]["decision"]["action"] for call in calls_of(started.events())] == [
        "BLOCK",
        "ALLOW",
    ]
