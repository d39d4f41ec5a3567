"""One process of a run whose level is lowered: `python -m tests.core.tainted HOME CALLS`.

It says a line when it is ready, waits for one, then makes CALLS calls that lower the run, or calls
until it is killed if CALLS is 0. Before each call it prints the level that it meets. If CALLS is
`locked`, another process holds the run's lock: it makes one call, says that it passed, and is
killed.
"""

import itertools
import os
import signal
import sys
from pathlib import Path

from tests.core.test_taint import make, policy, tool_call
from tests.hosts import host_in
from tests.policy.bundles import rule

from subluminal.core.runs.opening import Sharing


def main(home: str, calls: int) -> None:
    """Makes the calls."""
    lowering = [
        rule("taint", name, lower_to=level, match={"tool_name": {"glob": [name]}})
        for name, level in (("mild", "TRUSTED"), ("web", "UNTRUSTED"))
    ]
    sharing = Sharing(wait_ms=10_000)
    host = host_in(Path(home), policy(*lowering), sharing=sharing)
    make(host, "s", "nothing")
    print("ready", flush=True)
    sys.stdin.readline()
    state = host._open["run-1"].run.state
    for number in range(calls) if calls else itertools.count():
        print(state.taint.rank(), flush=True)
        make(host, "s", "web" if number > 5 or calls else "mild" if number > 2 else "nothing")
    host.close()


def lower_locked(home: str) -> None:
    """Makes a call that no rule can judge, and dies."""
    lowering = rule("taint", "web", match={"server_name": {"glob": ["web"]}})
    host = host_in(Path(home), policy(lowering, defaults={"decision_on_error": "ALLOW"}))
    if host.begin(tool_call("web", "fetch"), b"{}").is_allowed:
        print("passed", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    if sys.argv[2] == "locked":
        lower_locked(sys.argv[1])
    main(sys.argv[1], int(sys.argv[2]))
