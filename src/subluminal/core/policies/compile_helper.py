"""Compiles one policy file in a process of its own, so that a shim never loads YAML (fast-start).

`python -P -m subluminal.core.policies.compile_helper NAME [KEY_FILE LAYER] < bundle` writes the
snapshot to stdout, or the first problems as text, with exit code 1. With KEY_FILE the bundle must
be signed. The shim uses `start` and `collect`.
"""

import sys
from typing import TYPE_CHECKING, NamedTuple

from subluminal.contracts.vocabulary import Layer
from subluminal.core import helper_process
from subluminal.core.helper_process import Helper

if TYPE_CHECKING:
    from subluminal.policy.terms import Terms

MAX_PROBLEM_CHARS = 2_000
MAX_SECONDS = 30
"""A compiler that takes longer is killed; the largest bundle takes a second."""
_MODULE = "subluminal.core.policies.compile_helper"


class Compiled(NamedTuple):
    """A helper's answer: the JSON of a snapshot, or the problem with the policy."""

    snapshot: bytes | None
    problem: str


def start(
    name: str, bundle: bytes, layer: Layer = Layer.USER, key_file: str | None = None
) -> Helper:
    """Starts a helper that compiles `bundle`, which must be signed if there is a `key_file`.

    Raises OSError.
    """
    words = [name] if key_file is None else [name, key_file, layer.value]
    return helper_process.start(_MODULE, words, bundle, most_s=MAX_SECONDS)


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
    from subluminal.policy.loading import not_signable, parse_bundle

    name = sys.argv[1]
    data = sys.stdin.buffer.read()
    try:
        terms = _terms(sys.argv[2:])
        if name.endswith(".json") and b'"policy_hash"' in data:
            if terms.only_signed:
                raise not_signable(name)
            snapshot, _ = read_snapshot(data, find_installed)
        else:
            snapshot = compile_bundle(parse_bundle(data, name, find_installed, terms).bundle)
    except InvalidInput as error:
        text = "; ".join(str(problem) for problem in error.problems)
        sys.stdout.write(text[:MAX_PROBLEM_CHARS])
        return 1
    except SubluminalError as error:
        sys.stdout.write(str(error)[:MAX_PROBLEM_CHARS])
        return 1
    sys.stdout.buffer.write(snapshot.to_json())
    return 0


def _terms(words: list[str]) -> "Terms":
    """Reads the key. A shim's policy may be too old: then it refuses calls while it is in force."""
    from subluminal.policy.terms import ANY, Terms

    if not words:
        return ANY
    from subluminal.core.policies.signing_key import read_signing_key
    from subluminal.policy.dialects.agent_spm.signing import SigningKey

    key_file, layer = words
    # Whoever can write the user's policy can also write the settings that name the key.
    only_signed = layer != Layer.USER
    return Terms(key=SigningKey(read_signing_key(key_file)), only_signed=only_signed)


if __name__ == "__main__":
    raise SystemExit(main())
