"""Policies as files: bundles in YAML or JSON, and compiled snapshots. Shared by `sub policy …`."""

import os
import sys
from typing import NamedTuple

from subluminal.canonical import AmbiguousJSON, parse
from subluminal.contracts.bundle import Bundle
from subluminal.contracts.limits import MAX_BUNDLE_BYTES
from subluminal.errors import InvalidInput, Problem, SubluminalError
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.decompiling import read_snapshot
from subluminal.policy.loading import LoadedBundle, parse_bundle
from subluminal.policy.snapshot import Snapshot

STDIN = "-"


class Policy(NamedTuple):
    """A policy that can be asked. `loaded` is None where only its snapshot is there."""

    snapshot: Snapshot
    bundle: Bundle
    """as written, or as it can be told from a snapshot"""
    loaded: LoadedBundle | None


def read_file(path: str) -> bytes:
    """Reads a file that a person wrote, `-` for stdin; one byte past the bound at most."""
    try:
        if path == STDIN:
            return sys.stdin.buffer.read(MAX_BUNDLE_BYTES + 1)
        with open(path, "rb") as file:
            return file.read(MAX_BUNDLE_BYTES + 1)
    except (OSError, ValueError) as error:
        # A path with a NUL in it is a ValueError.
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SubluminalError(
            f"cannot read `{path}`: {(reason or 'unknown error').lower()}",
            hint=_near(path) if isinstance(error, FileNotFoundError) else None,
        ) from None


def shown_name(path: str) -> str:
    """What messages call a file."""
    return "<stdin>" if path == STDIN else path


def load_policy(path: str) -> Policy:
    """Loads a bundle and compiles it, or loads a snapshot as it is."""
    return policy_in(read_file(path), shown_name(path))


def policy_in(data: bytes, file: str) -> Policy:
    """Loads a policy from the bytes of a file, or raises InvalidInput with every problem."""
    if not is_snapshot(data):
        loaded = parse_bundle(data, file)
        return Policy(compile_bundle(loaded.bundle), loaded.bundle, loaded)
    try:
        snapshot, bundle = read_snapshot(data)
    except SubluminalError as error:
        raise InvalidInput([Problem(str(error), file, hint=error.hint)]) from None
    return Policy(snapshot, bundle, None)


def is_snapshot(data: bytes) -> bool:
    """Whether a file is a compiled policy: JSON with a `policy_hash`."""
    if not data.lstrip().startswith(b"{") or b'"policy_hash"' not in data:
        return False
    try:
        value = parse(data.strip()).value
    except AmbiguousJSON:
        return False
    return isinstance(value, dict) and "policy_hash" in value


def _near(path: str) -> str | None:
    from subluminal.contracts.shape import did_you_mean

    directory, name = os.path.split(path)
    try:
        names = os.listdir(directory or ".")
    except OSError:
        return None
    return did_you_mean(name, [*names, *[""] * 13])
