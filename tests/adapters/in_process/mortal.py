"""An agent that stops at a point of its own way, for a test that kills it there.

    python mortal.py HOME RUN POINT NONCE

POINT is `claimed` (before the decision is journalled), `journalled` (before the handler runs),
`handler` (within it), `done` (after the handler, before the ledger knows) or `never`. Says the
point on stdout and waits there to be killed.
"""

import sys
import time
from typing import Any

from tests.adapters.in_process.paying import KIND, paying

from subluminal.adapters.in_process.executions import sqlite
from subluminal.core.threaded_host import ThreadedHost
from subluminal.kernel import IntentEnvelope
from subluminal.sdk import KernelDoor, open_kernel


def main(home: str, run_id: str, point: str, nonce: str) -> None:
    def here(name: str) -> None:
        if name == point:
            print(name, flush=True)
            time.sleep(600)

    def before(owner: Any, method: str, name: str) -> None:
        """Stops before a method does its work."""
        original = getattr(owner, method)

        def stopping(*args: Any, **options: Any) -> Any:
            here(name)
            return original(*args, **options)

        setattr(owner, method, stopping)

    def pay(_envelope: IntentEnvelope) -> str:
        here("handler")
        return "paid"

    with open_kernel(paying(), home=home, run_id=run_id) as kernel:
        before(ThreadedHost, "begin", "claimed")
        before(KernelDoor, "_run", "journalled")
        before(sqlite.SqliteExecutions, "finish", "done")
        done = kernel.execute(KIND, {"amount": 5}, state={}, nonce=nonce, handler=pay)
    print(done.action, done.reason_code, done.ledger_hit and done.ledger_hit.status, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
