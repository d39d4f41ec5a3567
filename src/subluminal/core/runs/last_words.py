"""Closes the runs of a shim that was killed: the program that the warden runs (no-orphans).

The warden runs `python -m subluminal.core.runs.last_words HOME PID` after the server's process tree
is gone. Calls that have no end stay without one: `sub query --status UNKNOWN` finds them.
"""

import os
import sys

from subluminal.config.places import places
from subluminal.core.runs.abandoned import close_abandoned


def main() -> int:
    home, pid = sys.argv[1], int(sys.argv[2])
    close_abandoned(places({"SUB_HOME": home}, home), pid, "the shim was killed")
    return 0


if __name__ == "__main__":
    os.umask(0o077)
    raise SystemExit(main())
