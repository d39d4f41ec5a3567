"""`sub policy diff OLD NEW`: reports what changed and whether it loosens (spec 001, 9.4)."""

from subluminal.cli.files import load_policy
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.cli.policy_terms import add_signature, terms_of
from subluminal.contracts.vocabulary import SEVERITY_RANK, Severity
from subluminal.errors import ExitCode
from subluminal.operator.policies import compare_policies
from subluminal.policy.diff.report import as_markdown, as_text

EXAMPLE = """sub policy diff main.yaml policy.yaml
sub policy diff main.yaml policy.yaml --fail-on critical --format markdown"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("old", metavar="OLD", help="the old policy; `-` reads stdin")
    parser.add_argument("new", metavar="NEW", help="the new policy")
    parser.add_argument(
        "--fail-on",
        choices=[severity.value for severity in Severity],
        help="exit 1 if a change is at least this severe: critical loosens, warn tightens",
    )
    parser.add_argument(
        "--format", choices=["text", "markdown", "json"], default="text", help="default text"
    )
    add_signature(parser)
    parser.add_argument("--json", action="store_true", help="same as --format json")


def run(args: Args, out: Output) -> int:
    terms = terms_of(args)
    # A bundle that expired is compared with the one that replaces it.
    old = load_policy(args.old, terms._replace(now_ms=None))
    found = compare_policies(old, load_policy(args.new, terms))
    if args.json or args.format == "json":
        out.json(found)
    else:
        for line in as_markdown(found) if args.format == "markdown" else as_text(found):
            out.line(shown(line))
    return ExitCode.NO if _fails(found.severity, args.fail_on) else ExitCode.OK


def _fails(severity: Severity | None, fail_on: str | None) -> bool:
    if severity is None or fail_on is None:
        return False
    return SEVERITY_RANK[severity] >= SEVERITY_RANK[Severity(fail_on)]
