"""`sub secrets scan`: searches what was recorded for secrets, by today's values and patterns."""

import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.errors import ExitCode, UsageError
from subluminal.operator.secrets import open_secrets
from subluminal.operator.secrets_scan import FoundSecret, known_values, scan

EXAMPLE = """sub secrets scan
sub secrets scan --rewrite"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--rewrite", action="store_true", help="remove previews that contain a secret"
    )
    parser.add_argument(
        "--break-chain",
        action="store_true",
        help="with --rewrite: overwrite secrets in events too; `sub ledger verify` will report it",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per finding")


def run(args: Args, out: Output) -> int:
    if args.break_chain and not args.rewrite:
        raise UsageError("`--break-chain` needs `--rewrite`")
    home = open_secrets(os.environ)
    known = known_values(home)
    for problem in known.problems:
        out.warning(str(problem), problem.hint)
    found = left = 0
    for each in scan(home, known.values, rewrite=args.rewrite, may_break_chain=args.break_chain):
        found, left = found + 1, left + (not each.removed)
        _print(each, args.json, out)
    if not args.json:
        out.talk(_summary(found, left, args))
    return ExitCode.NO if left else ExitCode.OK


def _print(found: FoundSecret, as_json: bool, out: Output) -> None:
    if as_json:
        out.json(found._asdict())
        return
    word = out.paint("removed", "green") if found.removed else out.paint("found", "red")
    names = ", ".join(found.names)
    out.line(f"{word}  {shown(found.file)} {found.place} ({found.where}): {shown(names)}")


def _summary(found: int, left: int, args: Args) -> str:
    if not found:
        return "No secrets found."
    rotate = "Rotate the secrets that were recorded."
    if not args.rewrite:
        return f"{found} found. Use `--rewrite` to remove previews. {rotate}"
    kept = f"; {left} left in events, where `--break-chain` overwrites journals" if left else ""
    return f"{found} found, {found - left} removed{kept}. {rotate}"
