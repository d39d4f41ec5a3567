"""`sub ledgerd`: the local daemon that owns the ledger; bare, it runs in the foreground."""

import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.config.loading import load_settings
from subluminal.config.places import Places, places
from subluminal.errors import ExitCode
from subluminal.ledger.client.opening import need_daemon_extra

EXAMPLE = """sub ledgerd start
sub ledgerd status --json"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "verb",
        nargs="?",
        choices=["start", "stop", "status"],
        help="start in the background, stop, or tell how it is; without: run in the foreground",
    )
    parser.add_argument("--port", type=int, default=0, help="loopback port; 0 takes a free one")
    parser.add_argument("--no-http", action="store_true", help="answer on the unix socket only")
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
            return _serve(where, port)


def _serve(where: Places, port: int | None) -> int:
    from subluminal.ledger.daemon.serving import serve

    serve(where, load_settings(where.settings).ledger, port=port)
    return ExitCode.OK


def _start(where: Places, port: int | None, out: Output, *, as_json: bool) -> int:
    from subluminal.ledger.client.ledgerd import start
    from subluminal.ledger.daemon.instance import read_note

    # A broken config.toml is told here, with its lines, not in a log.
    load_settings(where.settings)
    is_new = start(where, port=port)
    note = read_note(where)
    pid = note.pid if note else None
    if as_json:
        out.json({"running": True, "pid": pid, "started": is_new})
    else:
        out.line(f"ledgerd {'started' if is_new else 'runs already'}, pid {pid}")
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
    out.line(f"ledgerd runs, pid {status['pid']}, for {status['uptime_s']:.0f} s")
    out.line(
        f"  {status['events_total']} events of {status['calls_total']} calls, "
        f"{status['events_per_s']} events/s"
    )
    out.line(f"  {status['backlog_bytes']} bytes of journals to read")
    out.line(f"  {status['ledger_bytes']} bytes in `{where.ledger}`, SQLite {status['sqlite']}")
    if status["http"]:
        out.line(f"  {status['http']}")
    if status["quarantined"]:
        out.warning(
            f"{status['quarantined']} lines in journals were no events",
            "`sub ledger verify` counts them; the table `quarantine` has their places",
        )
    if status["problem"]:
        out.error(status["problem"])
        return ExitCode.NO
    return ExitCode.OK
