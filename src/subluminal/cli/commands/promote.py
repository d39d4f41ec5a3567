"""`sub promote`: turns a hint into a grant for its run, or into a reviewed policy change."""

import os
from typing import TYPE_CHECKING

from msgspec import UNSET

from subluminal.cli.asking import agreed, is_at_terminal, need_person
from subluminal.cli.filters import since_ms
from subluminal.cli.frame import Args, Parser, sentence
from subluminal.cli.output import Output, shown
from subluminal.config.places import Places, places
from subluminal.counts import counted
from subluminal.errors import ExitCode, SubluminalError, UsageError
from subluminal.ledger.client.opening import open_ledger_file

if TYPE_CHECKING:
    import apsw

    from subluminal.contracts.control import ApprovalGiven
    from subluminal.operator.promoting.hinted import Hinted
    from subluminal.operator.promoting.review import Review

EXAMPLE = """sub promote hint-0198c7.3 --to .subluminal/policy.yaml
sub promote 0198c7.3 --to policy.yaml --key path --dry-run
sub promote 0198c7.3 --to policy.yaml --set limit_calls=100
sub promote 0198c7.3 --session --ttl 30m"""

_SINCE = "30d"
_FILE_OPTIONS = ("args", "key", "rule_id", "set", "since", "dry_run", "yes")
_SESSION_OPTIONS = ("ttl", "uses", "reason")
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "hint",
        metavar="HINT_ID",
        help="as `sub hints` prints it; the call's id or the end of either will do",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--session",
        action="store_true",
        help="let calls of this tool pass the rule for the rest of this run; "
        "of a limit: let this very call pass once",
    )
    where.add_argument(
        "--to",
        metavar="FILE",
        help="add an exception to this policy; of a limit: raise its numbers",
    )
    parser.add_argument(
        "--args",
        choices=["exact", "keys", "any"],
        help="--to: allow exactly these arguments (the default), only those that the rule looks "
        "at, or any",
    )
    parser.add_argument(
        "--key",
        action="append",
        metavar="NAME",
        help="--to: compare only this argument; repeatable",
    )
    parser.add_argument("--rule-id", metavar="ID", help="--to: name of the new rule")
    parser.add_argument(
        "--set",
        action="append",
        type=_number,
        metavar="FIELD=N",
        help="--to: of a limit: a number to change, such as limit_calls=100; repeatable; default: "
        "twice the calls, or half the window of a dedupe rule",
    )
    parser.add_argument(
        "--since", metavar="AGE|TIME", help="--to: backtest with calls since then; default 30d"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="--to: show the change, write nothing"
    )
    parser.add_argument("--yes", action="store_true", help="--to: write without asking")
    parser.add_argument(
        "--ttl", metavar="TIME", help="--session: how long, such as 10m; default 1h"
    )
    parser.add_argument(
        "--uses",
        type=int,
        metavar="N",
        help="--session: number of calls; default: any number, of a limit: 1",
    )
    parser.add_argument(
        "--reason", type=sentence, metavar="TEXT", help="--session: why, for the record"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    _check_options(args)
    from subluminal.operator.promoting.hinted import find_hinted

    where = places(os.environ)
    need_person("sub promote", where)
    ledger, connection = open_ledger_file(where, out.warning)
    try:
        hinted = find_hinted(ledger, connection, args.hint)
        assert connection is not None  # a hint was found in it
        if args.to is not None:
            return _edit(args, out, connection, hinted)
        if (ledger.run(hinted.run_id) or {}).get("ended_at"):
            out.warning(
                f"run `{hinted.run_id}` has ended", "the grant helps only if the run is resumed"
            )
        return _grant(args, out, where, connection, hinted)
    finally:
        if connection is not None:
            connection.close()


def _check_options(args: Args) -> None:
    """Refuses options of the other form, which would be silently ignored."""
    foreign, form = (
        (_FILE_OPTIONS, "--to FILE") if args.session else (_SESSION_OPTIONS, "--session")
    )
    for name in foreign:
        if getattr(args, name) not in (None, False):
            raise UsageError(f"`--{name.replace('_', '-')}` can only be used with `{form}`")
    if args.key and args.args:
        raise UsageError("`--key` and `--args` cannot be used together")


def _number(text: str) -> tuple[str, int]:
    """Reads `FIELD=N`."""
    field, _, number = text.partition("=")
    if not (field and number.isascii() and number.isdecimal() and len(number) <= 15):
        raise UsageError(f"`--set`: `{text}` is not FIELD=N", hint="such as limit_calls=100")
    return field, int(number)


def _edit(args: Args, out: Output, connection: "apsw.Connection", hinted: "Hinted") -> int:
    from subluminal.operator.promoting.review import review_change

    review = review_change(
        connection,
        hinted,
        args.to,
        args=args.args,
        keys=args.key or [],
        rule_id=args.rule_id,
        numbers=dict(args.set or []),
        since_ms=since_ms(args.since or _SINCE),
        watch=lambda calls: out.progress(f"{calls} past calls replayed"),
    )
    out.progress()
    if not args.json:
        _show(review, out)
        _say_what_else(args, review, out)
    _warn(review, out)
    if not args.dry_run:
        if not (args.yes or _agreed()):
            raise SubluminalError("nothing was changed")
        review.write()
    if args.json:
        out.json({"hint_id": hinted.hint_id, **review.plain(), "written": not args.dry_run})
    elif not args.dry_run:
        out.talk(_written(review, hinted, args.to))
        _print_when_in_force(args, out, hinted)
    return ExitCode.OK


def _say_what_else(args: Args, review: "Review", out: Output) -> None:
    """Names the options that would change the edit."""
    if review.edit.numbers:
        if not args.set:
            out.talk("To choose the numbers, use `--set FIELD=N`.")
    elif args.args in (None, "exact") and not args.key:
        out.talk("To allow more calls, use `--key NAME`, `--args keys` or `--args any`.")


def _written(review: "Review", hinted: "Hinted", file: str) -> str:
    rule = review.edit.rule
    if rule is not None:
        return f"Wrote rule `{shown(rule['rule_id'])}` into `{shown(file)}`."
    told = ", ".join(f"{each.field} {each.old} to {each.new}" for each in review.edit.numbers)
    return f"Changed rule `{shown(hinted.rule_id or '')}` in `{shown(file)}`: {told}."


def _show(review: "Review", out: Output) -> None:
    """Prints the diff of the text, what it changes, and the backtest."""
    from subluminal.policy.diff.report import as_text

    for line in review.diff_lines():
        colour = _COLOURS.get(line[:1])
        out.line(out.paint(shown(line), colour) if colour else shown(line))
    out.line()
    for line in as_text(review.report):
        out.line(shown(line))
    out.line(f"backtest: {review.backtest.sentence()}")


def _warn(review: "Review", out: Output) -> None:
    """Warns about what is easily overlooked in a review."""
    if review.edit.also_passed:
        names = ", ".join(f"`{name}`" for name in review.edit.also_passed)
        out.warning(f"these calls also bypass {names}", "an allow shields from every deny below it")
    for rule in review.still_refused_by:
        out.warning(f"{rule} refuses this call too", "the strictest layer decides")
    if review.doubt is not None:
        hint = "choose larger numbers with `--set`" if review.edit.numbers else None
        out.warning(review.doubt, hint)


def _agreed() -> bool:
    """Asks before a policy is loosened; without a terminal `--yes` is required."""
    if not is_at_terminal():
        raise UsageError(
            "there is no terminal to ask at, so nothing was changed",
            hint="use `--yes` or `--dry-run`",
        )
    return agreed("write this into the policy?")


def _print_when_in_force(args: Args, out: Output, hinted: "Hinted") -> None:
    from subluminal.contracts.vocabulary import Layer

    if hinted.layer is Layer.REPOSITORY:
        out.talk(
            "Runs under way keep the stricter policy that they started with, until"
            f" `sub policy accept {shown(args.to)}`."
        )
    else:
        out.talk("Running shims load it within a second.")


def _grant(
    args: Args, out: Output, where: Places, connection: "apsw.Connection", hinted: "Hinted"
) -> int:
    from subluminal.operator.promoting.granting import grant_for_run

    given = grant_for_run(
        where, connection, hinted, ttl=args.ttl, uses=args.uses, reason=args.reason
    )
    if args.json:
        out.json({"hint_id": hinted.hint_id, "run_id": hinted.run_id, "grant": given})
        return ExitCode.OK
    out.line(
        f"grant `{given.grant_id}`: {_calls(given)} rule `{shown(hinted.rule_id or '')}`"
        f" in run `{shown(hinted.run_id)}` until {given.expires_at}"
    )
    return ExitCode.OK


def _calls(given: "ApprovalGiven") -> str:
    tool = f"{shown(given.server_name)}/{shown(given.tool_name)}"
    if given.args_hash is not UNSET:
        tool += " with these arguments"
    if given.uses is UNSET:
        return f"any number of calls of {tool} pass"
    return f"{counted(given.uses, 'call')} of {tool} {'passes' if given.uses == 1 else 'pass'}"
