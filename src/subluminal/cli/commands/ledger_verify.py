"""`sub ledger verify`: proves the hash chain and every row derived from it (provable-ledger)."""

import os
import sys
from typing import TYPE_CHECKING, Any

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.cli.screens.findings import tell_findings
from subluminal.config.places import Places, places
from subluminal.counts import counted
from subluminal.errors import ExitCode, SubluminalError, UsageError
from subluminal.ledger.client.opening import need_daemon_extra

if TYPE_CHECKING:
    import apsw

    from subluminal.ledger.upkeep.anchors import Anchor

EXAMPLE = """sub ledger verify
sub ledger verify --anchor ci.log
sub ledger verify --artifact ./artifact
sub ledger verify --audit-records audit.jsonl --json"""

_MAX_LINES = 50
"""Findings that are printed for an artifact; the directory may not be an artifact at all."""

_REST = {
    "anchors": ("anchor", "the ledger contains {}, and continues from there"),
    "unanchored_events": ("event", "not signed yet: the last {}"),
    "unread_events": ("event", "not in the ledger yet, but in journals: {}"),
    "previews_missing": ("preview text", "dropped, with hashes that are verified: {}"),
    "unsealed_shims": ("shim", "without seals, as an early version wrote: {}"),
    "foreign_shims": ("shim", "of other homes, which hold the seals: {}"),
    "quarantined": (
        "line",
        "in quarantine, because not an event: {}; `sub ledgerd status` says where",
    ),
}
"""What a report says besides findings, unless the number is 0: what is counted, and a sentence."""

DERIVED = frozenset(
    [
        *("tool_calls", "previews", "hints", "intents", "grant_uses", "runs", "policy_versions"),
        *("tool_definitions", "approvals", "approval_answers", "grant_refusals", "switches"),
        *("rollups", "totals", "buckets", "gaps", "counters", "search"),
    ]
)
"""Tables that `sub ledger rebuild` makes anew."""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--run", metavar="RUN_ID", help="verify one run only")
    parser.add_argument(
        "--anchor",
        metavar="FILE",
        action="append",
        default=[],
        help="hold the ledger to the anchors in a file, such as a CI log; - reads stdin",
    )
    parser.add_argument("--artifact", metavar="DIR", help="verify an exported artifact instead")
    parser.add_argument(
        "--audit-records",
        metavar="FILE",
        help="verify a file of a kernel's audit records instead, JSONL or an array; - reads stdin",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object; one per audit record"
    )


def run(args: Args, out: Output) -> int:
    if args.artifact and (args.run or args.anchor):
        raise UsageError("`--artifact` cannot be used together with `--run` or `--anchor`")
    if args.audit_records and (args.artifact or args.run or args.anchor):
        raise UsageError("`--audit-records` cannot be used together with the other options")
    if args.audit_records:
        return _verify_audit_records(args.audit_records, out, as_json=args.json)
    if args.artifact:
        return _verify_artifact(args.artifact, out, as_json=args.json)
    need_daemon_extra()
    report = _verify(args.run, args.anchor, out)
    if args.run and not report["shims"] and not report["findings"]:
        raise SubluminalError(f"there is no run `{args.run}` in the ledger")
    if args.json:
        out.json(report | {"holds": not report["findings"]})
        return ExitCode.NO if report["findings"] else ExitCode.OK
    tell_findings(report["findings"], out)
    if report["findings"]:
        out.error("the ledger was damaged or changed", _hint(report["findings"]))
        return ExitCode.NO
    out.line(
        f"verified {counted(report['events'], 'event')} of {counted(report['shims'], 'shim')}, "
        f"{counted(report['calls'], 'call')} and "
        f"{counted(report['checkpoints'], 'signed checkpoint')}"
    )
    _tell_rest(report, out)
    return ExitCode.OK


def _hint(findings: list[dict[str, str]]) -> str:
    if all(finding["table"] in DERIVED for finding in findings):
        return "the events are whole; `sub ledger rebuild` makes the rest from them"
    return "the first line names the first bad row"


def _tell_rest(report: dict[str, Any], out: Output) -> None:
    for drop in report["drops"]:
        out.line(_dropped(drop))
    for name, (noun, sentence) in _REST.items():
        if report[name]:
            out.line(sentence.format(counted(report[name], noun)))


def _dropped(drop: dict[str, Any]) -> str:
    events = f"retention dropped {counted(drop['events'], 'event')}"
    match drop["reason"]:
        case "age":
            return f"{events} that were older than {drop['keep_days']} days"
        case "size":
            return f"{events} because the ledger was larger than {drop['max_bytes']} bytes"
        case _:
            return f"{events} before such drops were signed; nothing shows that they were due"


def read_anchors(path: str) -> "list[Anchor]":
    """The anchors in a file; `-` is stdin."""
    from subluminal.ledger.upkeep.anchors import MAX_BYTES, find_anchors

    if path == "-":
        return find_anchors(sys.stdin.buffer.read(MAX_BYTES), "stdin")
    try:
        with open(path, "rb") as file:
            return find_anchors(file.read(MAX_BYTES), path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(f"cannot read `{path}`: {reason}") from None


def _verify(run_id: str | None, paths: list[str], out: Output) -> dict[str, Any]:
    import msgspec

    from subluminal.ledger.proof import verify_ledger

    where = places(os.environ)
    anchors = [anchor for path in paths for anchor in read_anchors(path)]

    def progress(done: int, total: int) -> None:
        if done % 50 == 0:
            out.progress(f"verifying shim {done} of {total}")

    connection = open_to_verify(where, is_expected=bool(anchors))
    try:
        report = verify_ledger(connection, where, run_id=run_id, anchors=anchors, progress=progress)
    finally:
        connection.close()
        out.progress()
    found: dict[str, Any] = msgspec.to_builtins(report)
    return found


def open_to_verify(where: Places, *, is_expected: bool) -> "apsw.Connection":
    """Opens the ledger; an empty one if it was removed. Raises if there never was one."""
    from subluminal.ledger.store.database import open_empty, open_reader
    from subluminal.ledger.upkeep.note import read_note
    from subluminal.ledger.upkeep.written import count_written, find_behind

    if not os.path.exists(where.ledger):
        empty = open_empty()
        behind = find_behind(empty, where, count_written(where))
        if is_expected or read_note(where).last or any(each.lost for each in behind):
            return empty
    return open_reader(where.ledger)


def _verify_artifact(directory: str, out: Output, *, as_json: bool) -> int:
    """Verifies an artifact. Needs neither a home nor the ledger's libraries."""
    import msgspec

    from subluminal.export.verifying import verify_artifact

    proof = verify_artifact(directory)
    if as_json:
        out.json(msgspec.to_builtins(proof) | {"holds": not proof.findings})
        return ExitCode.NO if proof.findings else ExitCode.OK
    tell_findings([msgspec.to_builtins(each) for each in proof.findings[:_MAX_LINES]], out)
    if len(proof.findings) > _MAX_LINES:
        out.line(f"and {len(proof.findings) - _MAX_LINES} more; use --json to see all")
    if proof.findings:
        out.error("the artifact was damaged or changed", "do not rely on it")
        return ExitCode.NO
    events, shims = counted(proof.events, "event"), counted(proof.shims, "shim")
    out.line(f"verified {events} of {shims} and {counted(proof.files, 'file')}")
    if not proof.files:
        out.talk("Without a chain.json it is not proven that no events are missing at the end.")
    return ExitCode.OK


def _verify_audit_records(path: str, out: Output, *, as_json: bool) -> int:
    """Verifies a file of audit records. Needs neither a home nor the ledger's libraries."""
    from subluminal.cli.files import display_name, read_file
    from subluminal.operator.packs.audit_files import MAX_BYTES, read_records, verify_records

    rows = verify_records(read_records(read_file(path, MAX_BYTES), display_name(path)))
    wrong = [row for row in rows if row.verified is False]
    unknown = [row for row in rows if row.verified is None]
    if as_json:
        for row in rows:
            out.json(row._asdict())
        return ExitCode.NO if wrong else ExitCode.OK
    for row in [*wrong, *unknown]:
        out.line(f"{shown(row.intent_hash)}: {row.reason}")
    if wrong:
        verb = "was" if len(wrong) == 1 else "were"
        out.error(
            f"{counted(len(wrong), 'audit record')} of {len(rows)} {verb} changed",
            "do not rely on them",
        )
        return ExitCode.NO
    out.line(f"verified {counted(len(rows) - len(unknown), 'audit record')} of {len(rows)}")
    return ExitCode.OK
