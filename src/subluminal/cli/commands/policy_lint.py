"""`sub policy lint FILE…`: what is wrong, and what is probably not meant, with line numbers."""

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.errors import ExitCode, InvalidInput, Problem
from subluminal.operator.policy_files import policy_in, read_file, shown_name
from subluminal.policy.linting import WARNING, lint

EXAMPLE = """sub policy lint policy.yaml
sub policy lint --strict policies/*.yaml"""

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def add_arguments(parser: Parser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a bundle; `-` reads stdin")
    parser.add_argument("--strict", action="store_true", help="warnings fail too")
    parser.add_argument("--json", action="store_true", help="print one JSON object a problem")


def run(args: Args, out: Output) -> int:
    problems = [problem for path in args.files for problem in _problems(path)]
    for problem in problems:
        if args.json:
            out.json(problem._asdict())
        else:
            _print(problem, out)
    failing = ("error", WARNING) if args.strict else ("error",)
    failed = any(problem.severity in failing for problem in problems)
    if not args.json:
        out.talk(_verdict(len(args.files), problems))
    return ExitCode.NO if failed else ExitCode.OK


def _problems(path: str) -> list[Problem]:
    data = read_file(path)
    try:
        loaded = policy_in(data, shown_name(path)).loaded
    except InvalidInput as error:
        return list(error.problems)
    return [] if loaded is None else lint(loaded)


def _print(problem: Problem, out: Output) -> None:
    word = out.paint(problem.severity, _COLOURS[problem.severity])
    out.line(f"{shown(problem.place)}: {word}: {shown(problem.message)}")
    if problem.hint:
        out.line(f"  {out.paint('hint', 'cyan')}: {shown(problem.hint)}")


def _verdict(files: int, problems: list[Problem]) -> str:
    counts = [
        f"{number} {severity}{'s' if number > 1 else ''}"
        for severity in _COLOURS
        if (number := sum(problem.severity == severity for problem in problems))
    ]
    told = ", ".join(counts) or "no problems"
    return f"{files} file{'s' if files > 1 else ''}: {told}"
