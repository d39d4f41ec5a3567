"""Real `sub` commands in a home of the test's own."""

import os
import subprocess
import sys
from pathlib import Path

WITHIN_S = 120


def sub(home: Path, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Runs a command and returns its exit code and output."""
    return subprocess.run(
        [sys.executable, "-m", "subluminal", *words],
        input=stdin,
        capture_output=True,
        env={**os.environ, "SUB_HOME": str(home)},
        timeout=WITHIN_S,
        check=False,
    )
