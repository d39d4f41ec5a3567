"""`sub policy lint FILE…`: reports errors and likely mistakes with line numbers."""

from subluminal.cli.files import display_name, read_file
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.cli.policy_terms import add_dialect, add_signature, terms_of
from subluminal.counts import counted
from subluminal.errors import ExitCode, Problem
from subluminal.operator.policies import lint_policy
from subluminal.policy.lint.linting import WARNING

EXAMPLE = """sub policy lint policy.yaml
sub policy lint --strict policies/*.yaml"""

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def add_arguments(parser: Parser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a bundle; `-` reads stdin")
    parser.add_argument("--strict", action="store_true", help="fail on warnings too")
    add_dialect(parser)
    add_signature(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object per problem")


def run(args: Args, out: Output) -> int:
    terms = terms_of(args)
    problems = [
        problem
        for path in args.files
        for problem in lint_policy(read_file(path), display_name(path), terms)
    ]
    for problem in problems:
        if args.json:
            out.json(problem._asdict())
        else:
            _print(problem, out)
    failing = ("error", WARNING) if args.strict else ("error",)
    failed = any(problem.severity in failing for problem in problems)
    if not args.json:
        out.talk(_summary(len(args.files), problems))
    return ExitCode.NO if failed else ExitCode.OK


def _print(problem: Problem, out: Output) -> None:
    word = out.paint(problem.severity, _COLOURS[problem.severity])
    out.line(f"{shown(problem.place)}: {word}: {shown(problem.message)}")
    if problem.hint:
        out.line(f"  {out.paint('hint', 'cyan')}: {shown(problem.hint)}")


def _summary(files: int, problems: list[Problem]) -> str:
    counts = [
        counted(number, severity)
        for severity in _COLOURS
        if (number := sum(problem.severity == severity for problem in problems))
    ]
    told = ", ".join(counts) or "no problems"
    return f"{counted(files, 'file')}: {told}"
