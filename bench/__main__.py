"""`python -m bench [NAME…]`: runs benchmarks; exit code 1 if a ratio misses its bar.

Lines for people go to stderr, one JSON object per result to stdout.
"""

import importlib
import sys
from pathlib import Path


def names() -> list[str]:
    """Lists the benchmarks: the modules of this folder that have a function `measure`."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return [file.stem for file in files if "\ndef measure(" in file.read_text("utf-8")]


def main(chosen: list[str]) -> int:
    missed = 0
    for name in chosen or names():
        for result in importlib.import_module(f"bench.{name}").measure():
            print(result, file=sys.stderr, flush=True)
            print(result.as_json(), flush=True)
            missed += not result.ok
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
