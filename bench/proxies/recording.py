"""A minimal Python proxy that keeps the shim's promise: chained events, journal first.

It parses a call, hashes its canonical arguments, takes and frees a lock, and writes two chained
events in one write(2) before it forwards the line. It has no policy, counters, previews or
supervision, and records no answers. Only what the shim adds beyond this can still be saved.

usage: recording.py DIRECTORY COMMAND [ARG...]
"""

import fcntl
import os
import sys
import time
from hashlib import sha256

import msgspec

_EVENT = b'{"type":"tool_call","ts":%d,"run_id":"r","n":%d,"prev":"%b","args_hash":"%b","data":%b}'
_ALLOW = b'{"action":"ALLOW","rule_id":null,"severity":"info","summary":"no rule refused it"}'


class Journal:
    def __init__(self, directory: str) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        self._file = os.open(os.path.join(directory, "journal"), flags, 0o600)
        self._lock = os.open(os.path.join(directory, "lock"), flags, 0o600)
        self._encode = msgspec.json.Encoder(order="sorted").encode
        self._decode = msgspec.json.Decoder().decode
        self._prev = b"0" * 64
        self._n = 0

    def record(self, line: bytes) -> None:
        message = self._decode(line)
        if message.get("method") != "tools/call":
            return
        args = self._encode(message["params"]["arguments"])
        args_hash = sha256(args).hexdigest().encode()
        fcntl.lockf(self._lock, fcntl.LOCK_EX)
        fcntl.lockf(self._lock, fcntl.LOCK_UN)
        now = time.time_ns()
        start = _EVENT % (now, self._n, self._prev, args_hash, args)
        self._prev = sha256(self._prev + start).hexdigest().encode()
        decision = _EVENT % (now, self._n + 1, self._prev, args_hash, _ALLOW)
        self._prev = sha256(self._prev + decision).hexdigest().encode()
        self._n += 2
        os.write(self._file, start + b"\n" + decision + b"\n")


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))  # -I leaves it out
    from bare import pass_on

    journal = Journal(sys.argv[1])

    def record(data: bytes) -> None:
        for line in data.splitlines():
            journal.record(line)

    pass_on(sys.argv[2:], record)
