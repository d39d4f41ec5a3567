"""`sub import CLIENT`: puts shims before a client's MCP servers and adds hooks, after a backup."""

import os

from subluminal.cli.asking import agreed, is_at_terminal, need_person
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.screens.imports import (
    print_diff,
    print_done,
    print_drift,
    print_next,
    print_rows,
    warn_about,
)
from subluminal.errors import ExitCode, SubluminalError, UsageError
from subluminal.importer.clients.table import CLIENTS
from subluminal.importer.hooks.entries import HookWish
from subluminal.importer.importing import (
    Done,
    Target,
    import_targets,
    propose_import,
    without_hooks,
)
from subluminal.importer.proposal import Proposal
from subluminal.operator.doctor.hook_switches import switched_off
from subluminal.operator.importing import (
    Surroundings,
    is_ci,
    scope_of,
    surroundings,
    trust_hooks,
    untrusted_hooks,
)

EXAMPLE = """sub import claude
sub import codex --dry-run
sub import codex --yes --trust
sub import claude --path .mcp.json --yes
sub import --check"""

_TRUST_HINT = "run `sub import codex --trust`, or trust them in Codex with `/hooks`"


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
        "--check",
        action="store_true",
        help="change nothing; exit 1 if a server is not wrapped, or hooks are missing",
    )
    hooks = parser.add_mutually_exclusive_group()
    hooks.add_argument(
        "--hooks",
        action="store_true",
        help="add hooks without asking, also where the client has no configuration yet",
    )
    hooks.add_argument("--no-hooks", action="store_true", help="leave hooks alone")
    parser.add_argument(
        "--fail-closed",
        action="store_true",
        help="refuse a tool call if the hook itself fails; the default where CI is set",
    )
    parser.add_argument(
        "--trust", action="store_true", help="tell Codex to trust the hooks, without asking"
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
    if args.trust and (args.no_hooks or args.client not in (None, "codex")):
        raise UsageError("`--trust` is about the hooks of Codex")
    here = surroundings(os.environ, os.getcwd(), args.client, args.path)
    if args.bind_secrets and not (args.check or args.dry_run):
        # It approves the commands that the secrets are given to.
        need_person("sub import --bind-secrets", here.places)
    scope = scope_of(args.scope)
    if args.check:
        found = here.drift(scope)
        print_drift(found, args.json, out)
        return ExitCode.NO if any(each.is_mendable for each in found) else ExitCode.OK
    targets = here.targets(scope, _wish(args), even_new=args.hooks)
    plans = [propose_import(target, here.ours)[0] for target in targets]
    if args.dry_run:
        for plan in plans:
            print_diff(plan, out)
        warn_about(plans, out, binds_secrets=args.bind_secrets)
        return ExitCode.OK
    if not args.json:
        print_rows(plans, out)
    if not _takes_hooks(plans, args, out):
        targets = without_hooks(targets)
        plans = [propose_import(target, here.ours)[0] for target in targets]
    return _import(here, targets, plans, args, out)


def _import(
    here: Surroundings, targets: list[Target], plans: list[Proposal], args: Args, out: Output
) -> int:
    binds = args.bind_secrets and any(row.secrets for plan in plans for row in plan.rows)
    changes = binds or any(plan.changes for plan in plans)
    asks = binds or any(plan.changes_servers for plan in plans)
    if asks and not (args.yes or _agreed(out)):
        raise SubluminalError("nothing was changed")
    binder = here.binder(args.source) if binds else None
    done = import_targets(targets, here.ours, here.places, binder) if changes else []
    if args.json:
        print_rows(plans, out, as_json=True, done=done)
    warn_about(plans, out, binds_secrets=args.bind_secrets)
    print_done(done, binder, out)
    is_trusted = _trust(here, targets, args, out)
    deaf = _switched_off(here, done, out) | frozenset(() if is_trusted else ("codex",))
    print_next(done, _undo(args), out, deaf=deaf)
    return ExitCode.OK if is_trusted or not args.trust else ExitCode.NO


def _switched_off(here: Surroundings, done: list[Done], out: Output) -> frozenset[str]:
    """Warns of settings that switch hooks off. Returns the names of these clients."""
    found: set[str] = set()
    for client in [each.proposal.client for each in done if each.proposal.adds_hooks]:
        switch = switched_off(client, here.scene)
        if switch is not None:
            found.add(client.name)
            out.warning(
                f"{client.title} runs no hooks: `{switch.path}` has `{switch.setting}`",
                "remove that setting; `sub doctor` says whether the hook runs",
            )
    return frozenset(found)


def _wish(args: Args) -> HookWish | None:
    if args.no_hooks:
        return None
    return HookWish(fail_closed=args.fail_closed or is_ci(os.environ))


def _undo(args: Args) -> str:
    name = f" {args.client}" if args.client else ""
    path = f" --path {args.path}" if args.path else ""
    return f"sub restore{name}{path}"


def _takes_hooks(plans: list[Proposal], args: Args, out: Output) -> bool:
    """Asks at a terminal. Without one the command itself is the consent."""
    is_new = any(plan.adds_hooks for plan in plans)
    if not is_new or args.yes or args.hooks or not is_at_terminal():
        return True
    out.talk("")
    return agreed(
        "add hooks? Then every tool of the agent is decided and recorded, not only MCP servers.",
        default=True,
    )


def _trust(here: Surroundings, targets: list[Target], args: Args, out: Output) -> bool:
    """Has Codex trust its hooks if a person wants it. Returns False if it does not trust them."""
    if not any(target.hooks and target.client.name == "codex" for target in targets):
        return True
    try:
        keys = untrusted_hooks(here.scene)
        if keys and (args.trust or (not args.yes and _agreed_to_trust(out))):
            trust_hooks(here, keys)
            keys = untrusted_hooks(here.scene)
            out.talk("Codex trusts the hooks now.")
    except SubluminalError as problem:
        out.warning(f"Codex runs no hook that it does not trust: {problem}", _TRUST_HINT)
        return False
    if keys:
        out.warning("Codex does not run the hooks, because it does not trust them", _TRUST_HINT)
    return not keys


def _agreed_to_trust(out: Output) -> bool:
    if not is_at_terminal():
        return False
    out.talk("")
    return agreed("trust these hooks in Codex? It runs no others.", default=True)


def _agreed(out: Output) -> bool:
    """Asks at a terminal. Without one the command itself is the consent."""
    if not is_at_terminal():
        return True
    out.talk("")
    return agreed("change these files? A backup is made first.", default=True)
