"""`sub ledger verify`: proves the hash chain and every row derived from it (provable-ledger)."""

import os
from typing import Any

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.errors import ExitCode, UsageError
from subluminal.ledger.client.opening import need_daemon_extra

EXAMPLE = """sub ledger verify
sub ledger verify --artifact ./artifact"""

_MAX_LINES = 50
"""Findings that are printed for an artifact; the directory may not be an artifact at all."""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--run", metavar="RUN_ID", help="verify one run only")
    parser.add_argument("--artifact", metavar="DIR", help="verify an exported artifact instead")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    if args.run and args.artifact:
        raise UsageError("`--run` and `--artifact` cannot be used together")
    if args.artifact:
        return _verify_artifact(args.artifact, out, as_json=args.json)
    need_daemon_extra()
    report = _verify(args.run, out)
    if args.json:
        out.json(report | {"holds": not report["findings"]})
        return ExitCode.NO if report["findings"] else ExitCode.OK
    for finding in report["findings"]:
        out.line(shown(f"{finding['table']}: {finding['row']}: {finding['message']}"))
    if report["findings"]:
        out.error("the ledger was damaged or changed", "the first line names the first bad row")
        return ExitCode.NO
    out.line(
        f"verified {report['events']} events of {report['shims']} shims, {report['calls']} calls "
        f"and {report['checkpoints']} signed checkpoints"
    )
    _tell_rest(report, out)
    return ExitCode.OK


def _tell_rest(report: dict[str, Any], out: Output) -> None:
    if report["unanchored_events"]:
        out.line(f"the last {report['unanchored_events']} events are not signed yet")
    if report["dropped_events"]:
        out.line(f"retention dropped {report['dropped_events']} events; their hashes are verified")
    if report["quarantined"]:
        out.line(f"{report['quarantined']} lines were not events and are in quarantine")


def _verify(run_id: str | None, out: Output) -> dict[str, Any]:
    import msgspec

    from subluminal.ledger.proof import verify_ledger
    from subluminal.ledger.store.database import open_reader

    where = places(os.environ)

    def progress(done: int, total: int) -> None:
        if out.err_is_terminal and done % 50 == 0:
            out.talk(f"\x1b[1A\x1b[Kverifying shim {done} of {total}")

    connection = open_reader(where.ledger)
    try:
        report = verify_ledger(connection, where, run_id=run_id, progress=progress)
    finally:
        connection.close()
    found: dict[str, Any] = msgspec.to_builtins(report)
    return found


def _verify_artifact(directory: str, out: Output, *, as_json: bool) -> int:
    """Verifies an artifact. Needs neither a home nor the ledger's libraries."""
    import msgspec

    from subluminal.export.verifying import verify_artifact

    proof = verify_artifact(directory)
    if as_json:
        out.json(msgspec.to_builtins(proof) | {"holds": not proof.findings})
        return ExitCode.NO if proof.findings else ExitCode.OK
    for finding in proof.findings[:_MAX_LINES]:
        out.line(shown(f"{finding.table}: {finding.row}: {finding.message}"))
    if len(proof.findings) > _MAX_LINES:
        out.line(f"and {len(proof.findings) - _MAX_LINES} more; use --json to see all")
    if proof.findings:
        out.error("the artifact was damaged or changed", "do not rely on it")
        return ExitCode.NO
    out.line(f"verified {proof.events} events of {proof.shims} shims and {proof.files} files")
    if not proof.files:
        out.talk("Without a chain.json it is not proven that no events are missing at the end.")
    return ExitCode.OK
