"""What a dead shim could not say: it leaves the runs that it was in (no-orphans).

The warden runs `python -m subluminal.core.runs.last_words HOME PID` after the shim's tree is gone.
Calls without an end stay without one: nobody knows how they ended (`--status UNKNOWN`).
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
