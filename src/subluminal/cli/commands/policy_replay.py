"""`sub policy replay`: what recorded runs would have met under another policy (spec 001, 10)."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from subluminal.cli.filters import since_ms
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.config.places import places
from subluminal.contracts.vocabulary import Layer, Mode
from subluminal.errors import ExitCode
from subluminal.ledger.client.finding import find_run
from subluminal.ledger.client.ledger import Ledger
from subluminal.ledger.client.opening import open_ledger_file
from subluminal.operator.policy_files import load_policy
from subluminal.policy.replay.comparing import Change, Replayed
from subluminal.policy.replay.tallying import Tally
from subluminal.policy.snapshot import Snapshot

if TYPE_CHECKING:
    from subluminal.ledger.query.replaying import LedgerReplay

EXAMPLE = """sub policy replay --policy policy.yaml --since 7d
sub policy replay --policy policy.yaml --run 12a8877c --all
sub policy replay --policy strict.yaml --layer user --fail-on newly_blocked --json"""

_ANY = "any"
_CHANGES = [change.value for change in Change if change is not Change.SAME]


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--policy", required=True, metavar="FILE", help="the candidate: a bundle or a snapshot"
    )
    parser.add_argument(
        "--run",
        action="extend",
        nargs="+",
        metavar="ID",
        help="these runs only, each by its id or the end of it; else all",
    )
    parser.add_argument("--since", metavar="AGE|TIME", help="calls since then, such as 7d or 90m")
    parser.add_argument(
        "--layer",
        choices=[layer.value for layer in Layer],
        help="the layer that the candidate takes; else that of the policy of the same policy_id, "
        "else it stands for all of them",
    )
    parser.add_argument(
        "--mode",
        choices=[mode.value for mode in Mode],
        help="as if the candidate were in this mode: what would an observing one refuse?",
    )
    parser.add_argument("--all", action="store_true", help="every call, not only differences")
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        choices=[*_CHANGES, _ANY],
        help="exit 1 if a call would go this way; may be given more than once",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a call")


def run(args: Args, out: Output) -> int:
    candidate = _in_mode(load_policy(args.policy).snapshot, args.mode)
    since = since_ms(args.since)
    ledger, connection = open_ledger_file(places(os.environ), out.warning)
    if connection is None:
        tally = Tally()
        _end(tally, candidate, [], args, out)
        return ExitCode.OK
    from subluminal.ledger.query.replaying import LedgerReplay

    try:
        layer = None if args.layer is None else Layer(args.layer)
        replay = LedgerReplay(connection, candidate, layer=layer, since_ms=since)
        _print(replay, _runs(ledger, args.run), args, out)
        _end(replay.tally, candidate, sorted(replay.layering.missing), args, out)
    finally:
        connection.close()
    return ExitCode.NO if _fails(replay.tally, args.fail_on) else ExitCode.OK


def _in_mode(snapshot: Snapshot, mode: str | None) -> Snapshot:
    return snapshot if mode is None else Snapshot({**snapshot.data, "mode": mode})


def _runs(ledger: Ledger, names: list[str] | None) -> list[str] | None:
    if names is None:
        return None
    return list(dict.fromkeys(find_run(ledger, name) for name in names))


def _print(replay: "LedgerReplay", runs: list[str] | None, args: Args, out: Output) -> None:
    rows = _wanted(_watched(replay, runs, out), every=args.all)
    if args.json:
        for row in rows:
            out.json(row.plain())
        return
    from subluminal.cli.screens.replays import print_replayed

    print_replayed(out, rows)


def _wanted(rows: Iterator[Replayed], *, every: bool) -> Iterator[Replayed]:
    return (row for row in rows if every or row.change is not Change.SAME)


def _watched(replay: "LedgerReplay", runs: list[str] | None, out: Output) -> Iterator[Replayed]:
    # Where both go to one terminal, the rows themselves show how far it has come.
    is_told = not out.out_is_terminal
    for row in replay.rows(runs):
        if is_told and replay.tally.calls % 10_000 == 0:
            out.progress(f"{replay.tally.calls} calls replayed")
        yield row
    if is_told:
        out.progress()


def _end(tally: Tally, candidate: Snapshot, missing: list[str], args: Args, out: Output) -> None:
    if args.json:
        policy = {
            "policy_id": candidate.policy_id,
            "policy_version": candidate.version,
            "policy_hash": candidate.policy_hash,
        }
        found = {**tally.plain(), "policy": policy, "missing_policies": missing}
        out.json({"summary": found})
        return
    from subluminal.cli.screens.replays import print_tally

    print_tally(out, tally, candidate.policy_id, missing)


def _fails(tally: Tally, fail_on: list[str]) -> bool:
    failing = _CHANGES if _ANY in fail_on else fail_on
    return any(tally.changes[Change(change)] for change in failing)
