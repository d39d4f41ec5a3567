"""`sub pack replay PACK`: asks a pack again about recorded intents, and shows what changed."""

from typing import TYPE_CHECKING, Any

from subluminal.cli.commands.pack_show import add_pack
from subluminal.cli.files import display_name, read_file
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.counts import counted
from subluminal.errors import ExitCode

if TYPE_CHECKING:
    from subluminal.operator.packs.replaying import ReplayRow

EXAMPLE = """sub pack replay payments_pix --audit audit.jsonl
sub pack replay acme_refunds.pack:PACK --audit audit.jsonl --state state.json --all"""


def add_arguments(parser: Parser) -> None:
    add_pack(parser)
    parser.add_argument(
        "--audit",
        required=True,
        metavar="FILE",
        help="a file of audit records, JSONL or an array; `-` reads stdin",
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
    from subluminal.operator.packs.audit_files import MAX_BYTES, read_records
    from subluminal.operator.packs.describing import find_pack
    from subluminal.operator.packs.replaying import Recorded, Tally, Verdict, replay

    pack, tally = find_pack(args.pack).pack, Tally()
    state = _state(args.state) if args.state else None
    file = display_name(args.audit)
    records = read_records(read_file(args.audit, MAX_BYTES), file, decided=True)
    for row in replay(pack, map(Recorded, records), tally, state=state):
        if args.all or row.verdict is not Verdict.IDENTICAL:
            _tell(row, out, as_json=args.json)
    if args.json:
        out.json({"summary": tally.plain()})
    else:
        out.line(_summary(tally.plain()))
    return ExitCode.NO if tally.has_changed else ExitCode.OK


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
