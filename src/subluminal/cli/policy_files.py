"""Policies as files: bundles in YAML or JSON, and compiled snapshots. Shared by `sub policy …`."""

import os
import sys
from typing import NamedTuple

from subluminal.canonical import AmbiguousJSON, parse
from subluminal.contracts.limits import MAX_BUNDLE_BYTES
from subluminal.errors import InvalidInput, Problem, SubluminalError
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.loading import LoadedBundle, parse_bundle
from subluminal.policy.snapshot import Snapshot

STDIN = "-"


class Policy(NamedTuple):
    """A policy that can be asked. `loaded` is None where only its snapshot is there."""

    snapshot: Snapshot
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


def load_bundle(path: str) -> LoadedBundle:
    """Loads a bundle from a file, and refuses a snapshot: much of what was written is not in it."""
    data = read_file(path)
    if is_snapshot(data):
        hint = "give the bundle that it was compiled from"
        message = "this is a compiled snapshot, not a bundle"
        raise InvalidInput([Problem(message, shown_name(path), hint=hint)])
    return parse_bundle(data, shown_name(path))


def load_policy(path: str) -> Policy:
    """Loads a bundle and compiles it, or loads a snapshot as it is."""
    data = read_file(path)
    if is_snapshot(data):
        return Policy(snapshot_of(data, path), None)
    loaded = parse_bundle(data, shown_name(path))
    return Policy(compile_bundle(loaded.bundle), loaded)


def snapshot_of(data: bytes, path: str) -> Snapshot:
    """Reads a compiled snapshot, and names its file where it is damaged."""
    try:
        return Snapshot.from_json(data)
    except SubluminalError as error:
        raise InvalidInput([Problem(str(error), shown_name(path), hint=error.hint)]) from None


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
