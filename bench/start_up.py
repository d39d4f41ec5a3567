"""The start-up time of a command, compared with a bare interpreter."""

import sys
from collections.abc import Iterator
from pathlib import Path

from bench.harness import Result, command, interleaved

SUB = str(Path(sys.executable).with_name("sub"))


def measure() -> Iterator[Result]:
    """Measures the installed command, started as a shell starts it."""
    bare, version = interleaved(
        [command(sys.executable, "-c", "pass"), command(SUB, "version")], rounds=40
    )
    detail = f"{version * 1e3:.1f} ms against {bare * 1e3:.1f} ms"
    yield Result("sub version over python -c pass", version / bare, 3.0, False, detail)
