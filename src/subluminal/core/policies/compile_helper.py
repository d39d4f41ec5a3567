"""Compiles one policy file in a process of its own, so that a shim never loads YAML (fast-start).

`python -P -m subluminal.core.policies.compile_helper NAME [KEY_FILE LAYER] < bundle` writes the
snapshot to stdout, or the first problems as text, with exit code 1. With KEY_FILE the bundle must
be signed. The shim uses `start`, `collect` and `end`.
"""

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from subluminal.contracts.vocabulary import Layer
from subluminal.system.files import unnamed_file

if TYPE_CHECKING:
    from subluminal.policy.terms import Terms

MAX_PROBLEM_CHARS = 2_000
MAX_SECONDS = 30
"""A compiler that takes longer is killed; the largest bundle takes a second."""


class Compilation(NamedTuple):
    """A running helper: its process, and the pipe that its answer comes from."""

    pid: int
    fd: int
    chunks: list[bytes]
    until: float
    """deadline by the monotonic clock, in seconds"""


class Compiled(NamedTuple):
    """A helper's answer: the JSON of a snapshot, or the problem with the policy."""

    snapshot: bytes | None
    problem: str


def start(
    name: str, bundle: bytes, layer: Layer = Layer.USER, key_file: str | None = None
) -> Compilation:
    """Starts a helper that compiles `bundle`, which must be signed if there is a `key_file`."""
    read_in = _file_of(bundle)
    out, their_out = os.pipe()
    # -P: the helper must not import a `yaml.py` from the repository that it starts in.
    argv = [sys.executable, "-P", "-m", "subluminal.core.policies.compile_helper", name]
    if key_file is not None:
        argv += [key_file, layer.value]
    try:
        pid = os.posix_spawn(
            sys.executable,
            argv,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, read_in, 0),
                (os.POSIX_SPAWN_DUP2, their_out, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
    finally:
        os.close(read_in)
        os.close(their_out)
    os.set_blocking(out, False)
    return Compilation(pid, out, [], time.monotonic() + MAX_SECONDS)


def collect(running: Compilation) -> Compiled | None:
    """Reads what the helper has written; returns its answer when it is done, else None."""
    while True:
        try:
            chunk = os.read(running.fd, 65536)
        except BlockingIOError:
            if time.monotonic() < running.until:
                return None
            end(running)
            return Compiled(None, f"compiling it took longer than {MAX_SECONDS} s")
        if not chunk:
            break
        running.chunks.append(chunk)
    os.close(running.fd)
    code = os.waitstatus_to_exitcode(os.waitpid(running.pid, 0)[1])
    answer = b"".join(running.chunks)
    if code == 0:
        return Compiled(answer, "")
    return Compiled(None, answer.decode("utf-8", "replace") or "the policy compiler crashed")


def end(running: Compilation) -> None:
    """Kills a helper whose answer is no longer needed."""
    os.close(running.fd)
    try:
        os.kill(running.pid, signal.SIGKILL)
        os.waitpid(running.pid, 0)
    except (ProcessLookupError, ChildProcessError):
        return  # `sub run` collects every child that ends


def _file_of(data: bytes) -> int:
    """Returns an unnamed file with `data`. Unlike a pipe, it holds any amount without a reader."""
    fd = unnamed_file()
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


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
