"""`sub pack replay PACK`: asks a pack again about recorded intents, and shows what changed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from subluminal.cli.commands.pack_show import add_pack
from subluminal.cli.files import display_name, read_file
from subluminal.cli.filters import since_ms
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.counts import counted
from subluminal.errors import ExitCode, UsageError
from subluminal.ledger.client.finding import find_runs
from subluminal.ledger.client.opening import open_ledger_file

if TYPE_CHECKING:
    from subluminal.kernel import Pack
    from subluminal.operator.packs.replaying import ReplayRow, Tally

EXAMPLE = """sub pack replay payments_pix --since 7d
sub pack replay payments_pix --run 12a8877c --all
sub pack replay acme_refunds:PACK --audit audit.jsonl --state state.json --all"""

_UNDETERMINED = """\
undetermined: the record has no state, was masked, or cannot be read. Records have their state with
`[record] mode = "full"`; `--state FILE` stands in for it."""


def add_arguments(parser: Parser) -> None:
    add_pack(parser)
    parser.add_argument(
        "--run",
        action="extend",
        nargs="+",
        metavar="ID",
        help="only these runs, by id or the end of it; default all",
    )
    parser.add_argument(
        "--since", metavar="AGE|TIME", help="only records since then, such as 7d or 90m"
    )
    parser.add_argument(
        "--audit",
        metavar="FILE",
        help="a file of audit records instead of the ledger, JSONL or an array; `-` reads stdin",
    )
    parser.add_argument(
        "--state", metavar="FILE", help="the state, as JSON, for records that have none"
    )
    parser.add_argument(
        "--all", action="store_true", help="print every record, not only differences"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object per record, then a summary"
    )


def run(args: Args, out: Output) -> int:
    from subluminal.operator.packs.describing import find_pack
    from subluminal.operator.packs.replaying import Tally, Verdict

    if args.audit and (args.run or args.since):
        raise UsageError(
            "a file of audit records has no runs and no times",
            hint="use `--audit` alone, or `--run` and `--since` for the ledger",
        )
    pack, tally = find_pack(args.pack).pack, Tally()
    state = _state(args.state) if args.state else None
    with _replayed(args, out, pack, tally, state) as rows:
        for row in rows:
            if args.all or row.verdict is not Verdict.IDENTICAL:
                _tell(row, out, as_json=args.json)
    if args.json:
        out.json({"summary": tally.plain()})
    else:
        counts = tally.plain()
        out.line(_summary(counts))
        if counts["undetermined"]:
            out.line(_UNDETERMINED)
        if not counts["records"] and not args.audit:
            out.line("Calls that kernel rules decided are replayed by `sub policy replay`.")
    return ExitCode.NO if tally.has_changed else ExitCode.OK


@contextmanager
def _replayed(
    args: Args, out: Output, pack: "Pack", tally: "Tally", state: Any
) -> "Iterator[Iterator[ReplayRow]]":
    """Opens the records, and asks the pack about each."""
    from subluminal.operator.packs.audit_files import MAX_BYTES, read_records
    from subluminal.operator.packs.replaying import Recorded, replay

    if args.audit:
        file = display_name(args.audit)
        records = read_records(read_file(args.audit, MAX_BYTES), file, decided=True)
        yield replay(pack, map(Recorded, records), tally, state=state)
        return
    since = since_ms(args.since)
    ledger, connection = open_ledger_file(places(os.environ), out.warning)
    if connection is None:
        yield iter(())
        return
    from subluminal.ledger.query.audits import audit_records
    from subluminal.operator.packs.recorded import RecordedAudits

    try:
        found = RecordedAudits(audit_records(connection, find_runs(ledger, args.run), since))
        yield _with_unreadable(replay(pack, found, tally, state=state), found.unreadable, tally)
    finally:
        connection.close()


def _with_unreadable(
    rows: "Iterator[ReplayRow]", unreadable: "list[ReplayRow]", tally: "Tally"
) -> "Iterator[ReplayRow]":
    yield from rows
    for row in unreadable:
        tally.add(row.verdict)
        yield row


def _state(path: str) -> Any:
    from subluminal.operator.packs.scenarios import read_state

    return read_state(read_file(path), display_name(path))


def _tell(row: "ReplayRow", out: Output, *, as_json: bool) -> None:
    if as_json:
        out.json(row.plain())
        return
    name = row.call_id or row.intent_hash[:12]
    change = f"{row.was} -> {row.now}" if row.now and row.was != row.now else row.was
    reasons = [*(f"-{each}" for each in row.missing), *(f"+{each}" for each in row.extra)]
    parts = [name, row.verdict.value, row.mismatch or "", change, *reasons]
    out.line(shown("  ".join(filter(None, parts))))


def _summary(counts: dict[str, int]) -> str:
    words = [
        f"{counts['identical']} identical",
        f"{counts['basis_only']} with other reasons",
        f"{counts['decision_changed']} changed",
        f"{counts['undetermined']} undetermined",
    ]
    more = f"; {counts['other_intents']} of other intents" if counts["other_intents"] else ""
    return f"{counted(counts['records'], 'record')}: {', '.join(words)}{more}"
