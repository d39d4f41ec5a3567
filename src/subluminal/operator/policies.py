"""Policies as files: read, check, sign, compare, replay and accept them.

A file holds a bundle in YAML or JSON, a bundle of Agent-SPM, or a compiled snapshot.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from subluminal.canonical import AmbiguousJSON, parse
from subluminal.clock import now
from subluminal.config.loading import load_settings
from subluminal.config.places import Places
from subluminal.contracts.bundle import Bundle
from subluminal.contracts.limits import MAX_BUNDLE_BYTES
from subluminal.contracts.vocabulary import Dialect, Layer
from subluminal.core.policies.installed import find_installed
from subluminal.errors import InvalidInput, Problem, SubluminalError
from subluminal.policy.compiling import bundle_of, compile_bundle, read_snapshot
from subluminal.policy.loading import LoadedBundle, not_signable, parse_bundle
from subluminal.policy.snapshot import Snapshot
from subluminal.policy.terms import ANY, Terms

if TYPE_CHECKING:
    import apsw

    from subluminal.ledger.query.replaying import LedgerReplay
    from subluminal.policy.diff.report import Report
    from subluminal.policy.replay.tallying import Tally


class Policy(NamedTuple):
    """A policy that was read and compiled."""

    snapshot: Snapshot
    bundle: Bundle
    """as written, or as far as the snapshot tells"""
    loaded: LoadedBundle | None
    """None if the file was a snapshot"""


class Accepted(NamedTuple):
    """A repository policy that a person accepted."""

    file: str
    policy_hash: str
    runs: int
    """number of runs that had first seen another version"""


def read_file(path: str, most: int = MAX_BUNDLE_BYTES) -> bytes:
    """Reads a file; at most one byte more than it may have."""
    try:
        with open(path, "rb") as file:
            return file.read(most + 1)
    except (OSError, ValueError) as error:
        # A path with a NUL in it is a ValueError.
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SubluminalError(
            f"cannot read `{path}`: {(reason or 'unknown error').lower()}",
            hint=_similar_file(path) if isinstance(error, FileNotFoundError) else None,
        ) from None


def terms_in(
    places: Places,
    key_file: str | None = None,
    *,
    legacy: bool = False,
    dialect: Dialect | None = None,
) -> Terms:
    """Returns what a command demands of policies now: what the settings say, or a key of its own.

    If the person names a key, policies that cannot be signed are refused too.
    """
    named = key_file or load_settings(places.settings).policy.hmac_key_file
    key = None
    if named is not None:
        from subluminal.core.policies.signing_key import read_signing_key
        from subluminal.policy.dialects.agent_spm.signing import SigningKey

        key = SigningKey(read_signing_key(named), legacy)
    return Terms(dialect, now().wall_ms, key, only_signed=key_file is not None)


def layer_terms(places: Places, layer: Layer) -> Terms:
    """Returns what this home demands of the policy of one layer now."""
    terms = terms_in(places)
    return terms._replace(only_signed=terms.key is not None and layer is not Layer.USER)


def parse_policy(data: bytes, file: str, terms: Terms = ANY) -> Policy:
    """Loads a policy from the bytes of a file. Raises InvalidInput with every problem."""
    if terms.dialect is not None or not is_snapshot(data):
        loaded = parse_bundle(data, file, find_installed, terms)
        return Policy(compile_bundle(loaded.bundle), loaded.bundle, loaded)
    if terms.only_signed:
        raise not_signable(file)
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


def lint_policy(data: bytes, file: str, terms: Terms = ANY) -> list[Problem]:
    """Returns the errors in a policy's text, else what is probably a mistake."""
    from subluminal.policy.lint.linting import lint

    try:
        loaded = parse_policy(data, file, terms).loaded
    except InvalidInput as error:
        return list(error.problems)
    return [] if loaded is None else lint(loaded, now().wall_ms)


def sign_policy(data: bytes, file: str, key_file: str, *, legacy: bool = False) -> dict[str, Any]:
    """Returns a bundle of Agent-SPM with its signature. Raises SubluminalError.

    The bundle is checked first, and may have any signature or none.
    """
    from subluminal.core.policies.signing_key import read_signing_key
    from subluminal.policy.dialects.agent_spm.signing import signature_of

    key = read_signing_key(key_file)
    loaded = parse_bundle(data, file, terms=Terms(Dialect.AGENT_SPM, now().wall_ms))
    value: dict[str, Any] = loaded.value
    try:
        signature = signature_of(value, key, legacy=legacy)
    except AmbiguousJSON as error:
        raise InvalidInput([Problem(str(error), file, hint=error.hint)]) from None
    return {**value, "signature": signature}


def compare_policies(old: Policy, new: Policy) -> "Report":
    """Returns what changed from one policy to another, with the severity of each change."""
    from subluminal.policy.diff.diffing import diff
    from subluminal.policy.diff.report import report

    before, after = old.bundle, new.bundle
    if old.loaded is None or new.loaded is None:
        # A snapshot no longer has its author's words, so both sides are told from snapshots.
        before, after = bundle_of(old.snapshot), bundle_of(new.snapshot)
    return report(before, after, diff(before, after))


def accept_policy(places: Places, cwd: str, file: str | None = None) -> Accepted:
    """Puts a loosened repository policy into force for the runs under way (policy-layers).

    Without `file` it is the nearest `.subluminal/policy.yaml` of `cwd`. The caller makes sure that
    a person acts.
    """
    from subluminal.core.policies.files import repository_policy
    from subluminal.core.policies.pins import SeenPolicy, accept

    found = file or repository_policy(places, cwd)
    if found is None:
        raise SubluminalError(
            "there is no repository policy here",
            hint="name the file, or go to the repository that has `.subluminal/policy.yaml`",
        )
    path = os.path.normpath(os.path.join(cwd, found))
    snapshot = parse_policy(read_file(path), path, layer_terms(places, Layer.REPOSITORY)).snapshot
    runs = accept(places, SeenPolicy(path, snapshot))
    return Accepted(path, snapshot.policy_hash, len(runs))


def in_mode(snapshot: Snapshot, mode: str | None) -> Snapshot:
    """Returns the policy as if it were in another mode."""
    return snapshot if mode is None else Snapshot({**snapshot.data, "mode": mode})


def replay_of(
    connection: "apsw.Connection", candidate: Snapshot, *, layer: str | None, since_ms: int | None
) -> "LedgerReplay":
    """Prepares the replay of recorded runs with `candidate` in one layer."""
    from subluminal.ledger.query.replaying import LedgerReplay

    in_layer = None if layer is None else Layer(layer)
    return LedgerReplay(connection, candidate, layer=in_layer, since_ms=since_ms)


def replay_summary(
    tally: "Tally", candidate: Snapshot, missing: Iterable[str]
) -> dict[str, object]:
    """Returns the totals of a replay as `--json` prints them."""
    policy = {
        "policy_id": candidate.policy_id,
        "policy_version": candidate.version,
        "policy_hash": candidate.policy_hash,
    }
    return {**tally.plain(), "policy": policy, "missing_policies": sorted(missing)}


def _similar_file(path: str) -> str | None:
    from subluminal.contracts.shape import did_you_mean

    directory, name = os.path.split(path)
    try:
        names = os.listdir(directory or ".")
    except OSError:
        return None
    return did_you_mean(name, [*names, *[""] * 13])
