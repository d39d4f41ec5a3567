"""Completes the record of a shim that was killed, in a process of its own (no-orphans).

The warden runs `python -m subluminal.core.runs.last_words HOME PID` after the server's process tree
is gone. A shim that enters the run of a dead one runs it too, if the warden did not.
`sub query --status UNKNOWN` finds the calls whose outcome nobody knows.
"""

import os
import sys
import time

from subluminal.config.places import places
from subluminal.core.runs.abandoned import close_abandoned
from subluminal.core.runs.attendance import attendances

_PATIENCE_S = 5.0
_PAUSE_S = 0.05


def main() -> int:
    home, pid = sys.argv[1], int(sys.argv[2])
    where = places({"SUB_HOME": home}, home)
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        close_abandoned(where, pid, "the shim was killed")
        if not attendances(where, pid) or time.monotonic() > deadline:
            return 0
        # The kernel closes the files of a killed process one by one: the warden sees the end of its
        # pipe before the lock of the journal is free. Or another process completes the record.
        time.sleep(_PAUSE_S)


if __name__ == "__main__":
    os.umask(0o077)
    raise SystemExit(main())
