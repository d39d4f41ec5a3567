"""`sub secrets scan`: are there secrets in what was recorded, by today's values and shapes?"""

import os
from importlib.util import find_spec
from typing import NamedTuple

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.contracts.vocabulary import SecretSource
from subluminal.core.records.redaction.redactor import Redactor, redactor_for
from subluminal.core.records.redaction.scanning import Finding, rewrite, scan_journals
from subluminal.errors import ExitCode, SecretUnavailable, UsageError
from subluminal.operator.secrets_shared import Home, open_home
from subluminal.secrets.resolving import read_secret
from subluminal.secrets.value import SecretValue

EXAMPLE = """sub secrets scan
sub secrets scan --rewrite"""


class Row(NamedTuple):
    """One finding, as it is told."""

    file: str
    place: str
    where: str
    names: tuple[str, ...]
    removed: bool


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--rewrite", action="store_true", help="drop the previews that hold something"
    )
    parser.add_argument(
        "--break-chain",
        action="store_true",
        help="with --rewrite: also blot out what is in events; `sub ledger verify` will find it",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a finding")


def run(args: Args, out: Output) -> int:
    if args.break_chain and not args.rewrite:
        raise UsageError("--break-chain needs --rewrite")
    home = open_home()
    redactor = redactor_for(home.settings.redact, known_values(home, out))
    found = left = 0
    for finding in scan_journals(home.places.journal, redactor):
        done = args.rewrite and rewrite(finding, redactor, may_break_chain=args.break_chain)
        found, left = found + 1, left + (not done)
        _tell(_journal_row(home, finding, done), args.json, out)
    more_found, more_left = _scan_ledger(home, redactor, args, out)
    found, left = found + more_found, left + more_left
    if not args.json:
        out.talk(_verdict(found, left, args))
    return ExitCode.NO if left else ExitCode.OK


def known_values(home: Home, out: Output) -> list[SecretValue]:
    """Every value that can be read now: of bindings, and of the file store."""
    wanted = {(binding.source, binding.secret_ref) for _, binding in home.bindings()}
    wanted |= {(SecretSource.FILE, name) for name in home.store.contents().secrets}
    values = []
    for source, name in sorted(wanted):
        try:
            value = read_secret(source, name, home.sources)
        except SecretUnavailable as error:
            out.warning(f"not looked for: `{name}`: {error}", error.hint)
            continue
        if value:
            values.append(SecretValue(name, value))
        else:
            out.warning(f"not looked for: `{name}`: `{source.value}` has no value for it")
    return values


def _scan_ledger(home: Home, redactor: Redactor, args: Args, out: Output) -> tuple[int, int]:
    if not os.path.exists(home.places.ledger) or find_spec("apsw") is None:
        return 0, 0
    from subluminal.operator.secrets_ledger import drop_previews, scan_ledger

    findings = list(scan_ledger(home.places.ledger, redactor))
    droppable = [finding for finding in findings if finding.row]
    if args.rewrite and droppable:
        drop_previews(home.places.ledger, droppable)
    for finding in findings:
        done = bool(args.rewrite and finding.row)
        name = os.path.basename(home.places.ledger)
        _tell(Row(name, finding.place, finding.where, finding.names, done), args.json, out)
    return len(findings), len(findings) - (len(droppable) if args.rewrite else 0)


def _journal_row(home: Home, finding: Finding, removed: bool) -> Row:
    path = os.path.relpath(finding.path, home.places.home)
    return Row(path, f"byte {finding.offset}", finding.where, finding.names, removed)


def _tell(row: Row, as_json: bool, out: Output) -> None:
    if as_json:
        out.json(row._asdict())
        return
    word = out.paint("removed", "green") if row.removed else out.paint("found", "red")
    names = ", ".join(row.names)
    out.line(f"{word}  {shown(row.file)} {row.place} ({row.where}): {shown(names)}")


def _verdict(found: int, left: int, args: Args) -> str:
    if not found:
        return "nothing found"
    if not args.rewrite:
        return f"{found} found; `--rewrite` drops previews, and what was seen should be rotated"
    kept = f"; {left} left in events, which `--break-chain` blots out of journals" if left else ""
    return f"{found} found, {found - left} removed{kept}; rotate what was seen"
