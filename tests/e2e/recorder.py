"""Connects a client to a server that already runs behind two FIFOs, and records the client's lines.

`recorder.py LOG TO_SERVER FROM_SERVER`
"""

import os
import sys
import threading


def pass_back(path: str) -> None:
    with open(path, "rb") as answers:
        for line in answers:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()


log_path, to_server, from_server = sys.argv[1:]
threading.Thread(target=pass_back, args=(from_server,), daemon=True).start()
with open(log_path, "wb", buffering=0) as log, open(to_server, "wb", buffering=0) as server:
    for line in sys.stdin.buffer:
        log.write(line)
        server.write(line)
os._exit(0)
