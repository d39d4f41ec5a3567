"""`sub ledger rebuild`: rebuilds all derived data from the chained events (provable-ledger)."""

import os
from typing import TYPE_CHECKING, Any

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.screens.findings import tell_findings
from subluminal.config.places import Places, places
from subluminal.counts import counted
from subluminal.errors import ExitCode
from subluminal.ledger.client.opening import need_daemon_extra

if TYPE_CHECKING:
    from subluminal.ledger.proof import Finding

EXAMPLE = "sub ledger rebuild"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    need_daemon_extra()
    from subluminal.ledger.client.ledgerd import start, stop

    where = places(os.environ)
    # ledgerd is the only writer. What shims write meanwhile waits in their journals.
    was_running = stop(where)
    try:
        before, after, copy = _rebuild(where, out)
    finally:
        if was_running:
            start(where)
    if copy is not None:
        out.warning(f"events are damaged, so the ledger as it was is kept in `{copy}`")
    left = set(after)
    return _tell([each for each in before if each not in left], after, out, as_json=args.json)


def _rebuild(where: Places, out: Output) -> "tuple[list[Finding], list[Finding], str | None]":
    """Returns what `verify` finds before and after, and the path of a copy if one was kept."""
    from subluminal.ledger.daemon.instance import Lock
    from subluminal.ledger.proof import verify_ledger
    from subluminal.ledger.store.committing import Store
    from subluminal.ledger.store.database import open_reader
    from subluminal.ledger.upkeep.opening import open_ledger_writer
    from subluminal.ledger.upkeep.rebuilding import keep_evidence, rebuild
    from subluminal.trust.home_key import home_key

    open_reader(where.ledger).close()  # says so if there is no ledger
    lock = Lock(where)
    try:
        store = Store(open_ledger_writer(where, home_key(where.state)), where.ledger)
        try:
            before = verify_ledger(store.connection, where).findings
            copy = keep_evidence(store)
            rebuild(store, where, lambda done, total: _show(out, done, total))
            after = verify_ledger(store.connection, where).findings
        finally:
            store.close()
            out.progress()
    finally:
        lock.release()
    return before, after, copy


def _show(out: Output, done: int, total: int) -> None:
    out.progress(f"rebuilding: event {done} of {total}")


def _tell(mended: "list[Finding]", left: "list[Finding]", out: Output, *, as_json: bool) -> int:
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins({"mended": mended, "left": left})
    if as_json:
        out.json(found | {"holds": not left})
        return ExitCode.NO if left else ExitCode.OK
    if mended:
        out.line(f"mended {counted(len(mended), 'finding')}:")
        tell_findings(found["mended"], out)
    else:
        out.line("rebuilt all derived data; nothing was wrong with it")
    if left:
        out.line("left as it is:")
        tell_findings(found["left"], out)
        out.error(
            "the events themselves were damaged or changed",
            "a rebuild derives from the events, and cannot mend them",
        )
        return ExitCode.NO
    return ExitCode.OK
