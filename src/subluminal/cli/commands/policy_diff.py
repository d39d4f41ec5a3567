"""`sub policy diff OLD NEW`: what changed, and whether it loosens (spec 001 section 9.4)."""

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.contracts.bundle import Bundle
from subluminal.contracts.vocabulary import SEVERITY_RANK, Severity
from subluminal.errors import ExitCode
from subluminal.operator.policy_files import Policy, load_policy
from subluminal.policy.decompiling import bundle_of
from subluminal.policy.diff.report import as_markdown, as_text, report
from subluminal.policy.diffing import diff

EXAMPLE = """sub policy diff main.yaml policy.yaml
sub policy diff main.yaml policy.yaml --fail-on critical --format markdown"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("old", metavar="OLD", help="the policy as it was; `-` reads stdin")
    parser.add_argument("new", metavar="NEW", help="the policy as it is to be")
    parser.add_argument(
        "--fail-on",
        choices=[severity.value for severity in Severity],
        help="exit 1 if a change is at least this serious: critical loosens, warn tightens",
    )
    parser.add_argument("--format", choices=["text", "markdown", "json"], default="text")
    parser.add_argument("--json", action="store_true", help="the same as --format json")


def run(args: Args, out: Output) -> int:
    old, new = _comparable(load_policy(args.old), load_policy(args.new))
    found = report(old, new, diff(old, new))
    if args.json or args.format == "json":
        out.json(found)
    else:
        for line in as_markdown(found) if args.format == "markdown" else as_text(found):
            out.line(shown(line))
    return ExitCode.NO if _fails(found.severity, args.fail_on) else ExitCode.OK


def _comparable(old: Policy, new: Policy) -> tuple[Bundle, Bundle]:
    """Two bundles in the same words: a snapshot no longer has those of its author."""
    if old.loaded is not None and new.loaded is not None:
        return old.bundle, new.bundle
    return bundle_of(old.snapshot), bundle_of(new.snapshot)


def _fails(severity: Severity | None, fail_on: str | None) -> bool:
    if severity is None or fail_on is None:
        return False
    return SEVERITY_RANK[severity] >= SEVERITY_RANK[Severity(fail_on)]
