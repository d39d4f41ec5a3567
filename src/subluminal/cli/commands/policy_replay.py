"""`sub policy replay`: replays recorded runs under another policy (spec 001, 10)."""

import os
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from subluminal.cli.files import load_policy
from subluminal.cli.filters import since_ms
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.policy_terms import add_signature, terms_of
from subluminal.config.places import places
from subluminal.contracts.vocabulary import POLICY_LAYERS, Mode
from subluminal.errors import ExitCode
from subluminal.ledger.client.finding import find_runs
from subluminal.ledger.client.opening import open_ledger_file
from subluminal.operator.policies import in_mode, replay_of, replay_summary
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
        "--policy", required=True, metavar="FILE", help="the policy to try: a bundle or a snapshot"
    )
    parser.add_argument(
        "--run",
        action="extend",
        nargs="+",
        metavar="ID",
        help="only these runs, by id or the end of it; default all",
    )
    parser.add_argument(
        "--since", metavar="AGE|TIME", help="only calls since then, such as 7d or 90m"
    )
    parser.add_argument(
        "--layer",
        choices=[layer.value for layer in POLICY_LAYERS],
        help="the layer that the policy replaces; default: the layer of the policy with the same "
        "policy_id, else all layers",
    )
    parser.add_argument(
        "--mode",
        choices=[mode.value for mode in Mode],
        help="replay as if the policy were in this mode",
    )
    parser.add_argument("--all", action="store_true", help="print every call, not only differences")
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        choices=[*_CHANGES, _ANY],
        help="exit 1 if a call changes in this way; repeatable",
    )
    add_signature(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object per call")


def run(args: Args, out: Output) -> int:
    candidate = in_mode(load_policy(args.policy, terms_of(args)).snapshot, args.mode)
    since = since_ms(args.since)
    ledger, connection = open_ledger_file(places(os.environ), out.warning)
    if connection is None:
        _end(Tally(), candidate, [], args, out)
        return ExitCode.OK
    try:
        replay = replay_of(connection, candidate, layer=args.layer, since_ms=since)
        _print(replay, find_runs(ledger, args.run), args, out)
        _end(replay.tally, candidate, replay.layering.missing, args, out)
    finally:
        connection.close()
    return ExitCode.NO if _fails(replay.tally, args.fail_on) else ExitCode.OK


def _print(replay: "LedgerReplay", runs: list[str] | None, args: Args, out: Output) -> None:
    rows = (row for row in _watched(replay, runs, out) if args.all or row.change is not Change.SAME)
    if args.json:
        for row in rows:
            out.json(row.plain())
        return
    from subluminal.cli.screens.replays import print_replayed

    print_replayed(out, rows)


def _watched(replay: "LedgerReplay", runs: list[str] | None, out: Output) -> Iterator[Replayed]:
    """Yields the rows and shows progress, unless the rows themselves appear on the terminal."""
    is_told = not out.out_is_terminal
    for row in replay.rows(runs):
        if is_told and replay.tally.calls % 10_000 == 0:
            out.progress(f"{replay.tally.calls} calls replayed")
        yield row
    if is_told:
        out.progress()


def _end(
    tally: Tally, candidate: Snapshot, missing: Collection[str], args: Args, out: Output
) -> None:
    if args.json:
        out.json({"summary": replay_summary(tally, candidate, missing)})
        return
    from subluminal.cli.screens.replays import print_tally

    print_tally(out, tally, candidate.policy_id, sorted(missing))


def _fails(tally: Tally, fail_on: list[str]) -> bool:
    failing = _CHANGES if _ANY in fail_on else fail_on
    return any(tally.changes[Change(change)] for change in failing)
