"""Verifies an artifact without a home, a ledger or a daemon (provable-ledger).

With `chain.json`, every file is compared with its hash and every chain with its recorded end.
Without it, the chains in the directory's `*.jsonl` files are checked as far as they go; these may
be journals, or exported events.
"""

import hashlib
import os

import msgspec

from subluminal.config.plain_files import plain_file
from subluminal.contracts.codec import NO_EVENT
from subluminal.errors import SubluminalError
from subluminal.export.chain import CHAIN, FORMAT, Chain, ShimChain, decode_line
from subluminal.journal.reading import Follower, JournalFile, Lines, files_in, journal_files
from subluminal.journal.verifying import ChainCheck

_PIECE_BYTES = 1_048_576
_MAX_CHAIN_BYTES = 67_108_864
"""Most bytes that are read of chain.json; enough for more shims than any run has."""
_decode = msgspec.json.Decoder(Chain).decode


class Finding(msgspec.Struct, frozen=True):
    """One problem, in the same form as the findings of `sub ledger verify`."""

    table: str
    row: str
    message: str


class Proof(msgspec.Struct):
    """How much was checked, and the problems that were found."""

    findings: list[Finding]
    events: int = 0
    shims: int = 0
    files: int = 0
    """number of files compared with their hash; 0 without chain.json"""


def verify_artifact(directory: str) -> Proof:
    """Verifies a directory. Raises SubluminalError if it has nothing to verify."""
    chain = _read_chain(directory)
    files = sorted(files_in(directory, "")) if chain else journal_files(directory)
    if not files:
        raise SubluminalError(
            f"there is no `*.jsonl` file in `{directory}`", hint="give the artifact's directory"
        )
    proof = Proof([])
    checks: dict[str, ChainCheck] = {}
    for file in files:
        _prove_file(file, os.path.relpath(file.path, directory), proof, checks)
    if not proof.events and not proof.findings:
        raise SubluminalError(
            f"there is no event in `{directory}`", hint="its run probably never started"
        )
    proof.shims = len(checks)
    if chain is not None:
        _hold_to(chain, directory, proof, checks)
    for check in checks.values():
        if check.damage is not None:
            where = f"shim `{check.damage.shim_id}` event {check.damage.n}"
            proof.findings.append(Finding("events", where, check.damage.message))
    return proof


def _read_chain(directory: str) -> Chain | None:
    path = os.path.join(directory, CHAIN)
    try:
        with open(path, "rb", opener=plain_file) as file:
            chain = _decode(file.read(_MAX_CHAIN_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(f"cannot read `{path}`: {reason}") from None
    except NO_EVENT as error:
        raise SubluminalError(f"`{path}` is not a valid chain file: {error}") from None
    if chain.format != FORMAT:
        raise SubluminalError(
            f"`{path}` was written by another version of `sub`",
            hint="verify the artifact with that version",
        )
    return chain


def _prove_file(file: JournalFile, name: str, proof: Proof, checks: dict[str, ChainCheck]) -> None:
    follower = Follower(file.path)
    try:
        while (piece := follower.read()) is not None:
            if isinstance(piece, Lines):
                _check(piece.lines, checks, proof, name)
            else:
                what = "a line is longer than any event"
                proof.findings.append(Finding(name, f"offset {piece.offset}", what))
        if follower.size() > follower.offset:
            what = "the file ends in the middle of a line"
            proof.findings.append(Finding(name, f"offset {follower.offset}", what))
    finally:
        follower.close()


def _check(lines: list[bytes], checks: dict[str, ChainCheck], proof: Proof, name: str) -> None:
    for line in lines:
        try:
            source = decode_line(line).source
        except NO_EVENT as error:
            where = f"line after event {proof.events}"
            proof.findings.append(Finding(name, where, f"it is not an event: {error}"))
            continue
        proof.events += 1
        if source.n and source.prev:
            # A shim may serve several runs, so an artifact may begin in the middle of its chain.
            check = checks.get(source.shim_id)
            if check is None:
                check = ChainCheck(source.shim_id, source.n, source.prev.encode())
                checks[source.shim_id] = check
            check.feed(line)


def _hold_to(chain: Chain, directory: str, proof: Proof, checks: dict[str, ChainCheck]) -> None:
    """Compares the files and chains with chain.json."""
    for name, expected in chain.files.items():
        found = _hash_of(directory, name)
        proof.files += found is not None
        if found != expected:
            what = "it is missing" if found is None else "it was changed"
            proof.findings.append(Finding("files", name, what))
    named = {shim.shim_id: shim for shim in chain.shims}
    for shim_id in [*checks, *(each for each in named if each not in checks)]:
        problem = _misses(named.get(shim_id), checks.get(shim_id))
        if problem:
            proof.findings.append(Finding("events", f"shim `{shim_id}`", problem))
    if chain.events != proof.events:
        what = f"there are {proof.events} events, but there were {chain.events}"
        proof.findings.append(Finding("events", "all", what))


def _misses(named: ShimChain | None, check: ChainCheck | None) -> str | None:
    if named is None:
        return f"`{CHAIN}` does not list it"
    if check is None:
        return "all its events are missing"
    if check.damage is None:
        check.end(named.head.encode())
    return None


def _hash_of(directory: str, name: str) -> str | None:
    path = os.path.join(directory, name)
    if os.path.relpath(path, directory).startswith(".."):
        return None
    digest = hashlib.sha256()
    try:
        with open(path, "rb", opener=plain_file) as file:
            while data := file.read(_PIECE_BYTES):
                digest.update(data)
    except (OSError, ValueError):  # the name comes from chain.json, and may be anything
        return None
    return digest.hexdigest()
