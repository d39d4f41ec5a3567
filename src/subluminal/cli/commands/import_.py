"""`sub import CLIENT`: routes a client's MCP servers through shims, after a backup."""

import sys

from subluminal.cli.frame import Args, Parser
from subluminal.cli.import_output import (
    print_diff,
    print_drift,
    print_rows,
    say_what_was_done,
    warn_about,
)
from subluminal.cli.import_shared import Surroundings, find_all, scope_of
from subluminal.cli.output import Output
from subluminal.errors import ExitCode, SubluminalError, UsageError
from subluminal.importer.clients.table import CLIENTS
from subluminal.importer.drift import findings
from subluminal.importer.importing import import_targets, propose_import

EXAMPLE = """sub import claude
sub import codex --dry-run
sub import claude --path .mcp.json --yes
sub import --check"""


def add_arguments(parser: Parser) -> None:
    names = list(CLIENTS)
    parser.add_argument(
        "client",
        nargs="?",
        choices=names,
        metavar="CLIENT",
        help=f"{', '.join(names[:-1])} or {names[-1]}; default: every client that is found",
    )
    parser.add_argument("--path", metavar="FILE", help="only this configuration")
    parser.add_argument(
        "--scope",
        choices=["user", "project", "all"],
        default="all",
        help="your own files, those of the project in this folder, or both (the default)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show the difference, change nothing"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 if something is not wrapped"
    )
    parser.add_argument(
        "--bind-secrets",
        action="store_true",
        help="move secrets from the entries' `env` into a source, and bind them",
    )
    parser.add_argument(
        "--source",
        choices=["keychain", "file"],
        help="where --bind-secrets puts them; default: the keychain, else a file",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a server")


def run(args: Args, out: Output) -> int:
    if args.source and not args.bind_secrets:
        raise UsageError("`--source` is for `--bind-secrets`")
    here = Surroundings.of_this_command(args)
    if args.check:
        found = findings(
            here.scene,
            here.places,
            here.ours,
            here.clients,
            path=args.path,
            scope=scope_of(args.scope),
        )
        print_drift(found, args.json, out)
        return ExitCode.NO if found else ExitCode.OK
    targets = find_all(here, args)
    plans = [propose_import(target, here.ours)[0] for target in targets]
    if args.dry_run:
        for plan in plans:
            print_diff(plan, out)
        warn_about(plans, args, out)
        return ExitCode.OK
    if not args.json:
        print_rows(plans, out)
    binds = args.bind_secrets and any(row.secrets for plan in plans for row in plan.rows)
    changes = binds or any(plan.changes for plan in plans)
    if changes and not (args.yes or _agreed(out)):
        raise SubluminalError("nothing was changed")
    binder = here.binder(args.source) if binds else None
    done = import_targets(targets, here.ours, here.places, binder) if changes else []
    if args.json:
        print_rows(plans, out, as_json=True, done=done)
    warn_about(plans, args, out)
    say_what_was_done(done, binder, args, out)
    return ExitCode.OK


def _agreed(out: Output) -> bool:
    """Asks once. Where nobody can be asked the command itself is the answer."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    out.talk("")
    sys.stderr.write("change these files? a backup is made first [Y/n] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    return bool(answer) and answer.strip().lower() in ("", "y", "yes")
