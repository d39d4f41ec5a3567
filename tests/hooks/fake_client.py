"""A client with hooks: starts a command for each line of JSON on stdin, and answers in any order.

Each line is {"id", "argv", "stdin", "env"}; each answer {"id", "code", "out", "err"}. With
"serve": [INPUT, OUTPUT], the command is a server between two named pipes; the answer has its pid.
"""

import json
import os
import subprocess
import sys
import threading

_writing = threading.Lock()


def answer(**members: object) -> None:
    with _writing:
        sys.stdout.write(json.dumps(members) + "\n")
        sys.stdout.flush()


def run(asked: dict) -> None:
    ran = subprocess.run(
        asked["argv"],
        input=asked["stdin"].encode("utf-8", "surrogateescape"),
        capture_output=True,
        env={**os.environ, **asked["env"]},
    )
    answer(
        id=asked["id"],
        code=ran.returncode,
        out=ran.stdout.decode(),
        err=ran.stderr.decode(),
    )


def serve(asked: dict) -> None:
    source, sink = asked["serve"]
    with open(source, "rb") as incoming, open(sink, "wb") as outgoing:
        server = subprocess.Popen(
            asked["argv"],
            stdin=incoming,
            stdout=outgoing,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **asked["env"]},
        )
    answer(id=asked["id"], code=server.pid, out="", err="")
    server.wait()


for line in sys.stdin:
    asked = json.loads(line)
    threading.Thread(target=serve if "serve" in asked else run, args=[asked], daemon=True).start()
