"""Proves the chains in a directory of JSONL: an exported artifact, or journals themselves."""

import os

import msgspec

from subluminal.errors import SubluminalError
from subluminal.journal.reading import Follower, Lines, journal_files
from subluminal.journal.verifying import ChainCheck
from subluminal.ledger.proof.findings import Report


class _Source(msgspec.Struct):
    shim_id: str
    n: int = 0
    prev: str = ""


class _Line(msgspec.Struct):
    source: _Source


_decode = msgspec.json.Decoder(_Line).decode


def verify_artifact(directory: str) -> Report:
    """Proves every chain in the directory's `*.jsonl` files, in the order they were written."""
    files = journal_files(directory)
    if not files:
        raise SubluminalError(
            f"there is no `*.jsonl` file in `{directory}`", hint="name the artifact's directory"
        )
    report = Report()
    checks: dict[str, ChainCheck] = {}
    for file in files:
        follower = Follower(file.path)
        try:
            name = os.path.relpath(file.path, directory)
            while (piece := follower.read()) is not None:
                if isinstance(piece, Lines):
                    _check(piece.lines, checks, report, name)
                else:
                    report.add(name, f"offset {piece.offset}", "a line is longer than any event")
        finally:
            follower.close()
    report.shims = len(checks)
    for check in checks.values():
        if check.damage is not None:
            where = f"shim `{check.damage.shim_id}` event {check.damage.n}"
            report.add("events", where, check.damage.message)
    return report


def _check(lines: list[bytes], checks: dict[str, ChainCheck], report: Report, name: str) -> None:
    for line in lines:
        try:
            source = _decode(line).source
        except msgspec.MsgspecError as error:
            report.add(name, f"line after event {report.events}", f"it is no event: {error}")
            continue
        report.events += 1
        if source.n and source.prev:
            # An artifact of one run may begin in the middle of a shim's chain.
            check = checks.get(source.shim_id)
            if check is None:
                check = ChainCheck(source.shim_id, source.n, source.prev.encode())
                checks[source.shim_id] = check
            check.feed(line)
