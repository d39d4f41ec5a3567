"""`sub import CLIENT`: routes a client's MCP servers through shims, after a backup."""

import os

from subluminal.cli.asking import agreed, is_at_terminal, need_person
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.screens.imports import (
    print_diff,
    print_done,
    print_drift,
    print_rows,
    warn_about,
)
from subluminal.errors import ExitCode, SubluminalError, UsageError
from subluminal.importer.clients.table import CLIENTS
from subluminal.importer.importing import import_targets, propose_import
from subluminal.operator.importing import scope_of, surroundings

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
        help=f"{', '.join(names[:-1])} or {names[-1]}; default: every client found",
    )
    parser.add_argument("--path", metavar="FILE", help="only this configuration")
    parser.add_argument(
        "--scope",
        choices=["user", "project", "all"],
        default="all",
        help="your own files, those of the project in this directory, or all (the default)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would change, write nothing"
    )
    parser.add_argument("--yes", action="store_true", help="change files without asking")
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 if a server is not wrapped"
    )
    parser.add_argument(
        "--bind-secrets",
        action="store_true",
        help="move secrets from the entries' `env` into a secret source, bind them, and approve "
        "the entries' commands for them",
    )
    parser.add_argument(
        "--source",
        choices=["keychain", "file"],
        help="where --bind-secrets puts them; default: the keychain, else a file",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per server")


def run(args: Args, out: Output) -> int:
    if args.source and not args.bind_secrets:
        raise UsageError("`--source` needs `--bind-secrets`")
    here = surroundings(os.environ, os.getcwd(), args.client, args.path)
    if args.bind_secrets and not (args.check or args.dry_run):
        # It approves the commands that the secrets are given to.
        need_person("sub import --bind-secrets", here.places)
    scope = scope_of(args.scope)
    if args.check:
        found = here.drift(scope)
        print_drift(found, args.json, out)
        return ExitCode.NO if any(each.is_mendable for each in found) else ExitCode.OK
    targets = here.targets(scope)
    plans = [propose_import(target, here.ours)[0] for target in targets]
    if args.dry_run:
        for plan in plans:
            print_diff(plan, out)
        warn_about(plans, out, binds_secrets=args.bind_secrets)
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
    warn_about(plans, out, binds_secrets=args.bind_secrets)
    print_done(done, binder, _undo(args), out)
    return ExitCode.OK


def _undo(args: Args) -> str:
    name = f" {args.client}" if args.client else ""
    path = f" --path {args.path}" if args.path else ""
    return f"sub restore{name}{path}"


def _agreed(out: Output) -> bool:
    """Asks at a terminal. Without one the command itself is the consent."""
    if not is_at_terminal():
        return True
    out.talk("")
    return agreed("change these files? A backup is made first.", default=True)
