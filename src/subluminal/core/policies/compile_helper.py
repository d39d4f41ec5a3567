"""Compiles one policy file in a process of its own, so that a shim never loads YAML (fast-start).

`python -P -m subluminal.core.policies.compile_helper NAME < bundle` writes the snapshot to stdout,
or the first problems as text, with exit code 1. The shim uses `start` and `collect`.
"""

import sys
from typing import NamedTuple

from subluminal.core import helper_process
from subluminal.core.helper_process import Helper

MAX_PROBLEM_CHARS = 2_000
MAX_SECONDS = 30
"""A compiler that takes longer is killed; the largest bundle takes a second."""
_MODULE = "subluminal.core.policies.compile_helper"


class Compiled(NamedTuple):
    """A helper's answer: the JSON of a snapshot, or the problem with the policy."""

    snapshot: bytes | None
    problem: str


def start(name: str, bundle: bytes) -> Helper:
    """Starts a helper that compiles `bundle`. Raises OSError."""
    return helper_process.start(_MODULE, [name], bundle, most_s=MAX_SECONDS)


def collect(running: Helper) -> Compiled | None:
    """Returns the helper's answer when it is done, else None."""
    answer = helper_process.collect(running)
    if answer is None:
        return None
    if answer.code == 0:
        return Compiled(answer.data, "")
    if answer.code is None:
        return Compiled(None, f"compiling it took longer than {MAX_SECONDS} s")
    return Compiled(None, answer.data.decode("utf-8", "replace") or "the policy compiler crashed")


def main() -> int:
    """Runs the helper; returns its exit code."""
    from subluminal.core.policies.installed import find_installed
    from subluminal.errors import InvalidInput, SubluminalError
    from subluminal.policy.compiling import compile_bundle, read_snapshot
    from subluminal.policy.loading import parse_bundle

    name = sys.argv[1]
    data = sys.stdin.buffer.read()
    try:
        if name.endswith(".json") and b'"policy_hash"' in data:
            snapshot, _ = read_snapshot(data, find_installed)
        else:
            snapshot = compile_bundle(parse_bundle(data, name, find_installed).bundle)
    except InvalidInput as error:
        text = "; ".join(str(problem) for problem in error.problems)
        sys.stdout.write(text[:MAX_PROBLEM_CHARS])
        return 1
    except SubluminalError as error:
        sys.stdout.write(str(error)[:MAX_PROBLEM_CHARS])
        return 1
    sys.stdout.buffer.write(snapshot.to_json())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
