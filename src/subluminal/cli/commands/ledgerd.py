"""`sub ledgerd`: runs the daemon that owns the ledger, or starts, stops and checks it."""

import os
from typing import Any

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.config.loading import load_settings
from subluminal.config.places import Places, places
from subluminal.errors import ExitCode
from subluminal.ledger.client.opening import need_daemon_extra

EXAMPLE = """sub ledgerd start
sub ledgerd status --json"""


_MAX_REASON = 120


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "verb",
        nargs="?",
        choices=["start", "stop", "status"],
        help="start in the background, stop, or show the status; default: run in the foreground",
    )
    parser.add_argument(
        "--port", type=int, default=0, help="loopback port; 0 (default) chooses a free one"
    )
    parser.add_argument("--no-http", action="store_true", help="serve only the unix socket")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    need_daemon_extra()
    where = places(os.environ)
    port = None if args.no_http else args.port
    match args.verb:
        case "start":
            return _start(where, port, out, as_json=args.json)
        case "stop":
            return _stop(where, out, as_json=args.json)
        case "status":
            return _status(where, out, as_json=args.json)
        case _:
            return _serve(where, port, out)


def _serve(where: Places, port: int | None, out: Output) -> int:
    from subluminal.ledger.daemon.serving import serve

    def tell(reason: str) -> None:
        out.talk(f"ledgerd exits: {reason}")

    serve(where, load_settings(where.settings).ledger, port=port, tell=tell)
    return ExitCode.OK


def _start(where: Places, port: int | None, out: Output, *, as_json: bool) -> int:
    from subluminal.ledger.client.ledgerd import start
    from subluminal.ledger.daemon.instance import read_note

    # Reports a broken config.toml here, with line numbers, and not only in a log.
    load_settings(where.settings)
    is_new = start(where, port=port)
    note = read_note(where)
    pid = note.pid if note else None
    if as_json:
        out.json({"running": True, "pid": pid, "started": is_new})
    else:
        out.line(f"ledgerd {'started' if is_new else 'is already running'}, pid {pid}")
    return ExitCode.OK


def _stop(where: Places, out: Output, *, as_json: bool) -> int:
    from subluminal.ledger.client.ledgerd import stop

    was_running = stop(where)
    if as_json:
        out.json({"running": False, "stopped": was_running})
    else:
        out.line("ledgerd stopped" if was_running else "ledgerd was not running")
    return ExitCode.OK


def _status(where: Places, out: Output, *, as_json: bool) -> int:
    from subluminal.ledger.client.http import Client
    from subluminal.ledger.daemon.instance import read_note

    if read_note(where) is None:
        if as_json:
            out.json({"running": False})
        else:
            out.line("ledgerd is not running")
        return ExitCode.NO
    status = Client(where).get("/v1/status")
    if as_json:
        out.json(status)
        return ExitCode.OK
    out.line(f"ledgerd is running, pid {status['pid']}, for {status['uptime_s']:.0f} s")
    out.line(
        f"  {status['events_total']} events of {status['calls_total']} calls, "
        f"{status['events_per_s']} events/s"
    )
    unfinished = status["unfinished_bytes"]
    rest = f", {unfinished} bytes of unfinished lines" if unfinished else ""
    out.line(f"  {status['backlog_bytes']} bytes of journals to read{rest}")
    out.line(f"  {status['ledger_bytes']} bytes in `{where.ledger}`, SQLite {status['sqlite']}")
    if status["http"]:
        out.line(f"  {status['http']}")
    _warn(status, out)
    if status["problem"]:
        out.error(status["problem"])
        return ExitCode.NO
    return ExitCode.OK


def _warn(status: dict[str, Any], out: Output) -> None:
    if status["quarantined"]:
        out.warning(
            f"{status['quarantined']} lines of journals, {status['quarantined_bytes']} bytes,"
            " were not events"
        )
        for each in status["damage"]:
            length = "" if each["length"] is None else f", {each['length']} bytes"
            place = f"{each['origin']} at {each['offset']}{length}"
            out.talk(shown(f"  {place}: {each['reason'][:_MAX_REASON]}"))
    if status["newer_events"]:
        out.warning(
            f"{status['newer_events']} events of a newer version are stored, but not read",
            "upgrade subluminal to see them as calls and runs",
        )
    if status["events_lost"]:
        out.warning(
            f"{status['events_lost']} events that were written are gone, with their journals",
            "`sub ledger verify` names the shims",
        )
