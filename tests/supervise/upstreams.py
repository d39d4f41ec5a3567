"""Upstreams that behave like real servers and their wrappers, well or badly.

Each prints `ready` once it has set itself up.
"""

import sys

PYTHON = [sys.executable, "-I", "-S", "-c"]

POLITE = ["sh", "-c", "echo ready; exec cat"]
"""Exits by itself at the end of its input, as all real servers do."""

STUBBORN = ["sh", "-c", "trap '' TERM INT HUP; echo ready; while :; do sleep 1000; done"]
"""Ignores end of input and every polite signal."""

BACKGROUND = ["sh", "-c", "sleep 1000 & sleep 1000"]
"""Leaves two orphans when only the direct child is killed (dependencies.md, finding 7)."""

WRAPPED = ["sh", "-c", "sh -c 'echo ready; cat; exec sleep 1000'; exit $?"]
"""Like npx: a wrapper that waits for the real server, which does not exit at the end of its input."""

ESCAPE = """
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(1, b"ready\\n")
        while True:
            signal.pause()
    os._exit(0)
os.wait()
os.read(0, 1)
"""
ESCAPING = [*PYTHON, ESCAPE]
"""Leaves a daemon behind: other session, other group, no parent, ignores SIGTERM."""

BREEDING = [
    *PYTHON,
    """
import os, signal, time
end = time.monotonic() + 30  # a failed test must not leave it to the machine
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(1, b"ready\\n")
while time.monotonic() < end:
    if os.fork() == 0:
        os.setsid()
    else:
        signal.sigtimedwait([], 0.01)
        os._exit(0)
""",
]
"""Replaces itself all the time: each child starts a new session and loses its parent.

Only Linux can end it: it is never the same process when `ps` has listed it.
"""

STOPPER = ["sh", "-c", "kill -STOP $PPID; echo ready; exec cat"]
"""Stops its own warden once, and lives as long as its input."""

STOPPING = [
    *PYTHON,
    """
import os, signal, time
end = time.monotonic() + 30
warden = os.getppid()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while time.monotonic() < end:
                try:
                    os.kill(warden, signal.SIGSTOP)
                except ProcessLookupError:
                    pass
                signal.sigtimedwait([], 0.0002)
        os._exit(0)
    os.wait()
os.write(1, b"ready\\n")
while True:
    signal.pause()
""",
]
"""Its daemons stop the warden again and again. Nothing of it obeys SIGTERM."""
