"""`sub restore CLIENT`: undoes `sub import`."""

import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.errors import ExitCode
from subluminal.importer.backups import list_backups
from subluminal.importer.clients.table import CLIENTS
from subluminal.importer.restorable import restorable
from subluminal.importer.restoring import How, Restoration
from subluminal.operator.importing import Surroundings, surroundings

EXAMPLE = """sub restore claude
sub restore --list"""


def add_arguments(parser: Parser) -> None:
    names = list(CLIENTS)
    parser.add_argument(
        "client",
        nargs="?",
        choices=names,
        metavar="CLIENT",
        help=f"{', '.join(names[:-1])} or {names[-1]}; default: all clients",
    )
    parser.add_argument("--path", metavar="FILE", help="only this configuration")
    parser.add_argument("--list", action="store_true", help="list the backups, change nothing")
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be restored, change nothing"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per file")


def run(args: Args, out: Output) -> int:
    here = surroundings(os.environ, os.getcwd(), args.client, args.path)
    if args.list:
        return _list(here, args, out)
    restorer = here.restorer()
    targets = [
        target
        for client in here.clients
        for target in restorable(client, here.scene, here.places, path=args.path)
    ]
    # All restorations are planned before one is made: an unreadable file stops all of them.
    planned = [restorer.propose(target) for target in targets]
    if not args.dry_run:
        planned = [restorer.restore(plan.target) for plan in planned]
    ours = [plan for plan in planned if plan.before != plan.after]
    for plan in ours:
        if args.json:
            row = {"client": plan.target.client.name, "path": plan.target.path}
            found = {"servers": plan.servers, "hooks": plan.hooks}
            out.json({**row, "how": plan.how.value, **found})
        else:
            _print(plan, args.dry_run, out)
    if not ours:
        out.talk("Nothing to restore.")
    return ExitCode.OK


def _print(plan: Restoration, dry_run: bool, out: Output) -> None:
    verb = "would restore" if dry_run else "restored"
    out.line(f"{verb} `{shown(plan.target.path)}`: {shown(_how(plan))}")


def _how(plan: Restoration) -> str:
    if plan.how is How.EXACT:
        return "the exact bytes from before the import"
    if plan.how is How.REMOVED:
        return "removed, because the import created it"
    done = [f"unwrapped {', '.join(plan.servers)}"] if plan.servers else []
    done += ["took out the hooks"] if plan.hooks else []
    return f"{' and '.join(done) or 'took out what was ours'}; everything else is kept"


def _list(here: Surroundings, args: Args, out: Output) -> int:
    wanted = {client.name for client in here.clients}
    real = os.path.realpath(args.path) if args.path else None
    found = [b for b in list_backups(here.places, real) if b.manifest.client in wanted]
    for backup in found:
        manifest = backup.manifest
        if args.json:
            out.json(
                {
                    "backup_id": manifest.backup_id,
                    "kind": manifest.kind,
                    "client": manifest.client,
                    "path": manifest.path,
                    "created_at": manifest.created_at,
                    "servers": [path[-1] for path in manifest.servers],
                    "hooks": manifest.hooks,
                    "folder": backup.folder,
                }
            )
            continue
        head = f"{manifest.created_at}  {manifest.kind:<7}  {manifest.client:<8}"
        out.line(f"{head}  {shown(manifest.path)}")
        out.line(f"  {backup.folder}")
    if not found and not args.json:
        out.talk("No backups.")
    return ExitCode.OK
