"""`sub ledger anchor`: a signed head of the ledger, to be kept where the agent cannot write."""

import os

from subluminal.cli.commands.ledger_verify import open_to_verify, read_anchors
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.screens.findings import tell_findings
from subluminal.config.places import Places, places
from subluminal.errors import ExitCode, SubluminalError
from subluminal.ledger.client.opening import need_daemon_extra

EXAMPLE = """sub ledger anchor
git notes add -m "$(sub ledger anchor)"
sub ledger anchor --add ci.log"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--add",
        metavar="FILE",
        help="record the anchors in a file, such as a CI log, so that verify holds the ledger to "
        "them; - reads stdin",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    need_daemon_extra()
    where = places(os.environ)
    return _add(where, args.add, out, as_json=args.json) if args.add else _print(where, out)


def _print(where: Places, out: Output) -> int:
    """Signs all that is recorded, and prints the anchor of it: one line of JSON in any case."""
    from subluminal.ledger.client.direct import wait_for_journals
    from subluminal.ledger.client.ledgerd import ensure_running
    from subluminal.ledger.store.database import open_reader
    from subluminal.ledger.upkeep.anchors import make_anchor
    from subluminal.ledger.upkeep.checkpoints import last_checkpoint
    from subluminal.trust.home_key import home_key

    client = ensure_running(where)
    connection = open_reader(where.ledger)
    try:
        if not wait_for_journals(where, connection):
            out.warning("ledgerd has not read all journals yet; the anchor does not cover the rest")
        client.post("/v1/checkpoints", b"")
        made = last_checkpoint(connection)
    finally:
        connection.close()
    if made is None:
        raise SubluminalError("nothing is recorded yet, so there is nothing to sign")
    out.json(make_anchor(made, home_key(where.state)))
    return ExitCode.OK


def _add(where: Places, path: str, out: Output, *, as_json: bool) -> int:
    """Records anchors of this home. An anchor that the ledger does not contain is recorded too."""
    import msgspec

    from subluminal.ledger.proof.checkpoints import check_anchors, load_keys
    from subluminal.ledger.proof.findings import Report
    from subluminal.ledger.upkeep.anchors import record_anchors

    anchors = read_anchors(path)
    keys = load_keys(where)
    connection = open_to_verify(where, is_expected=True)
    report = Report()
    try:
        check_anchors(connection, anchors, keys, report)
    finally:
        connection.close()
    ours = [each for each in anchors if keys.home and each.home == keys.home.key_id]
    recorded = record_anchors(where, [each for each in ours if each.is_genuine()])
    findings = msgspec.to_builtins(report.findings)
    if as_json:
        out.json({"recorded": recorded, "findings": findings, "holds": not findings})
        return ExitCode.NO if findings else ExitCode.OK
    tell_findings(findings, out)
    if findings:
        out.error("the ledger is not the one that was anchored", "run `sub ledger verify`")
        return ExitCode.NO
    number = "1 anchor" if recorded == 1 else f"{recorded} anchors"
    out.line(f"recorded {number}; `sub ledger verify` holds the ledger to every anchor recorded")
    return ExitCode.OK
