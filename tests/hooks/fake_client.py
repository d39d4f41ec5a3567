"""A client with hooks: starts a command for each line of JSON on stdin, and answers in any order.

Each line is {"id", "argv", "stdin", "env"}; each answer {"id", "code", "out", "err"}. With "serve",
the command is a server whose pipes stay open, and the answer is its pid.
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


for line in sys.stdin:
    threading.Thread(target=run, args=[json.loads(line)], daemon=True).start()
