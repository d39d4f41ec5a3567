"""`sub policy init [FILE]`: writes a first policy from the tools that were recorded.

Without FILE it is the user's policy, which applies to every run of this home (policy-layers). Only
a person may write that one (local-is-not-trusted).
"""

import os

from subluminal.cli.asking import need_person
from subluminal.cli.files import STDIN
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.config.places import Places, places
from subluminal.contracts.vocabulary import Mode
from subluminal.counts import counted
from subluminal.errors import ExitCode, UsageError
from subluminal.ledger.client.opening import open_ledger_file
from subluminal.operator.policies import parse_policy
from subluminal.operator.starting import draft_policy, is_user_policy, write_new
from subluminal.policy.starter import Starter

EXAMPLE = """sub policy init
sub policy init .subluminal/policy.yaml --mode observe
sub policy init - | less"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="default: policy.yaml in $SUB_HOME, which applies to every run; `-` prints",
    )
    parser.add_argument(
        "--mode",
        choices=[mode.value for mode in Mode],
        default=Mode.GUARDRAILS.value,
        help="default guardrails: enforce the rules; observe: only record what would be refused",
    )
    parser.add_argument("--force", action="store_true", help="replace a file that exists")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    where = places(os.environ)
    path = args.file or where.policy
    if path == STDIN and (args.json or args.force):
        raise UsageError("`-` prints the policy: `--json` and `--force` do not apply")
    if path != STDIN and is_user_policy(where, path):
        need_person("sub policy init", where)
    made = _draft(where, args.mode, out)
    if path == STDIN:
        out.data(made.text.encode())
        return ExitCode.OK
    policy = parse_policy(made.text.encode(), path)
    write_new(where, path, made.text, force=args.force)
    rules = len(policy.bundle.rules)
    if args.json:
        policy_hash = policy.snapshot.policy_hash
        counts = {"rules": rules, "tools": made.tools, "writes": made.writes}
        out.json({"file": path, "policy_hash": policy_hash, **counts})
        return ExitCode.OK
    source = (
        f"from {counted(made.tools, 'recorded tool')}, {made.writes} of which "
        f"{'changes' if made.writes == 1 else 'change'} something"
        if made.tools
        else "for the usual names: no tool was recorded yet"
    )
    out.line(f"wrote `{shown(path)}`: {counted(rules, 'rule')}, {source}")
    _say_what_next(where, path, out)
    return ExitCode.OK


def _draft(where: Places, mode: str, out: Output) -> Starter:
    ledger, connection = open_ledger_file(where, out.warning)
    try:
        return draft_policy(ledger, connection, mode)
    finally:
        if connection is not None:
            connection.close()


def _say_what_next(where: Places, path: str, out: Output) -> None:
    name = shown(path)
    if is_user_policy(where, path):
        out.talk("It applies to every run of this home; running shims load it within a second.")
    steps = {
        f"sub policy replay --policy {name}": "what it would have done to recorded runs",
        f"sub policy explain --policy {name} --server S --tool T": "what it does to one call",
        "sub policy test CASES": "the calls and decisions that you expect, as a file",
    }
    width = max(map(len, steps))
    out.talk("Read it, and check the list of tools that change something. Next:")
    for step, why in steps.items():
        out.talk(f"  {step:<{width}}  {why}")
    out.talk("A guide is in docs/guides/writing-a-policy.md.")
