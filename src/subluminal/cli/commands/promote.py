"""`sub promote`: turns a hint into a grant for its run, or into a reviewed policy change."""

import os
import sys
from typing import TYPE_CHECKING

from subluminal.cli.filters import since_ms
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.config.places import Places, places
from subluminal.errors import ExitCode, SubluminalError, UsageError
from subluminal.ledger.client.opening import open_ledger_file
from subluminal.operator.person import need_person
from subluminal.operator.said import said

if TYPE_CHECKING:
    import apsw

    from subluminal.operator.promoting.hinted import Hinted

EXAMPLE = """sub promote hint-0198c7.3 --to .subluminal/policy.yaml
sub promote 0198c7.3 --to policy.yaml --key path --dry-run
sub promote 0198c7.3 --session --ttl 30m"""

_SINCE = "30d"
_FILE_OPTIONS = ("args", "key", "rule_id", "since", "dry_run", "yes")
_SESSION_OPTIONS = ("ttl", "uses", "reason")


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "hint", metavar="HINT_ID", help="as `sub hints` prints it; a call's id, or its end, will do"
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--session", action="store_true", help="let calls of this tool pass the rule in this run"
    )
    where.add_argument("--to", metavar="FILE", help="put an exception into this policy")
    parser.add_argument(
        "--args",
        choices=["exact", "keys", "any"],
        help="--to: the call's own arguments (the default), those of them that the rule looks at,"
        " or any",
    )
    parser.add_argument(
        "--key", action="append", metavar="NAME", help="--to: only these arguments; repeatable"
    )
    parser.add_argument("--rule-id", metavar="ID", help="--to: the new rule's name")
    parser.add_argument(
        "--since", metavar="AGE|TIME", help="--to: backtest calls since then; default 30d"
    )
    parser.add_argument("--dry-run", action="store_true", help="--to: show it, change nothing")
    parser.add_argument("--yes", action="store_true", help="--to: do not ask")
    parser.add_argument("--ttl", metavar="AGE", help="--session: how long; default 1h")
    parser.add_argument("--uses", type=int, metavar="N", help="--session: at most so many calls")
    parser.add_argument(
        "--reason", type=said, metavar="TEXT", help="--session: why, for the record"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    _refuse_strangers(args)
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
            out.warning(f"run `{hinted.run_id}` has ended", "the grant helps only if it goes on")
        return _grant(args, out, where, connection, hinted)
    finally:
        if connection is not None:
            connection.close()


def _refuse_strangers(args: Args) -> None:
    """An option of the other way would be silently ignored."""
    strangers, way = (
        (_FILE_OPTIONS, "--to FILE") if args.session else (_SESSION_OPTIONS, "--session")
    )
    for name in strangers:
        if getattr(args, name) not in (None, False):
            raise UsageError(f"`--{name.replace('_', '-')}` goes with `{way}`")
    if args.key and args.args:
        raise UsageError("`--key` and `--args` exclude each other")


def _edit(args: Args, out: Output, connection: "apsw.Connection", hinted: "Hinted") -> int:
    from subluminal.clock import now, rfc3339
    from subluminal.importer.files import read_config, refuse_unwritable, replace
    from subluminal.operator.promoting.past import look_back
    from subluminal.operator.promoting.planning import EXACT, Wish, plan_exception
    from subluminal.operator.promoting.review import Review
    from subluminal.trust.identity.users import local_user

    found = read_config(args.to)
    refuse_unwritable(args.to, found)
    by = f"promoted from {hinted.hint_id} by {local_user()}, {rfc3339(now().wall_ms)[:10]}"
    wish = Wish(args.args or EXACT, args.key or [], args.rule_id, by)
    plan = plan_exception(found.data, args.to, hinted, wish)
    past = look_back(connection, plan, hinted, since_ms(args.since or _SINCE), out)
    review = Review(args.to, found.data, plan, past)
    if not args.json:
        review.show(out)
        if wish.args == EXACT and not wish.keys:
            out.talk("`--key NAME`, `--args keys` and `--args any` reach further")
    review.warn(out)
    if not args.dry_run:
        if not (args.yes or _agreed()):
            raise SubluminalError("nothing was changed")
        replace(found, plan.data)
    if args.json:
        out.json({"hint_id": hinted.hint_id, **review.plain(), "written": not args.dry_run})
    elif not args.dry_run:
        out.talk(f"wrote rule `{shown(plan.rule['rule_id'])}` into `{shown(args.to)}`")
        _say_when_it_holds(args, out, hinted)
    return ExitCode.OK


def _agreed() -> bool:
    """Asks once. Loosening a policy is nothing to do where nobody can be asked."""
    if not _is_at_terminal():
        raise UsageError(
            "nobody can be asked here, so nothing was changed", hint="say `--yes`, or `--dry-run`"
        )
    sys.stderr.write("write this into the policy? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _is_at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _say_when_it_holds(args: Args, out: Output, hinted: "Hinted") -> None:
    from subluminal.contracts.vocabulary import Layer

    if hinted.layer is Layer.REPOSITORY:
        out.talk(
            "runs under way keep the stricter policy that they first saw, until"
            f" `sub policy accept {shown(args.to)}`"
        )
    else:
        out.talk("shims that use it take it within a second")


def _grant(
    args: Args, out: Output, where: Places, connection: "apsw.Connection", hinted: "Hinted"
) -> int:
    from subluminal.operator.promoting.granting import allowed_ttl_ms, grant_for_run

    ttl_ms = allowed_ttl_ms(connection, hinted, args.ttl)
    given = grant_for_run(where, hinted, ttl_ms=ttl_ms, uses=args.uses, reason=args.reason)
    if args.json:
        out.json({"hint_id": hinted.hint_id, "run_id": hinted.run_id, "grant": given})
        return ExitCode.OK
    uses = "any number of calls" if args.uses is None else f"{args.uses} calls"
    call = hinted.call
    out.line(
        f"grant `{given.grant_id}`: {uses} of {shown(call.server_name)}/{shown(call.tool_name)}"
        f" pass rule `{shown(hinted.rule_id or '')}` in run `{shown(hinted.run_id)}`"
        f" until {given.expires_at}"
    )
    return ExitCode.OK
