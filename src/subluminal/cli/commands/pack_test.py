"""`sub pack test PACK FILE…`: runs scenarios, and compares with what they expect."""

from typing import TYPE_CHECKING

from subluminal.cli.commands.pack_show import add_pack
from subluminal.cli.files import display_name, read_file
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.counts import counted
from subluminal.errors import ExitCode

if TYPE_CHECKING:
    from subluminal.operator.packs.scenarios import ScenarioResult

EXAMPLE = """sub pack test payments_pix scenarios/*.json
sub pack test acme_refunds:PACK refund.json --json"""


def add_arguments(parser: Parser) -> None:
    add_pack(parser)
    parser.add_argument("files", nargs="+", metavar="FILE", help="a scenario; `-` reads stdin")
    parser.add_argument("--json", action="store_true", help="print one JSON object per scenario")


def run(args: Args, out: Output) -> int:
    from subluminal.operator.packs.describing import find_pack
    from subluminal.operator.packs.scenarios import read_scenarios, run_scenario

    pack = find_pack(args.pack).pack
    # All files are read before a scenario runs: a broken file is an error, not a mismatch.
    files = [(display_name(path), read_file(path)) for path in args.files]
    results = [run_scenario(pack, scenario) for scenario in read_scenarios(pack, files)]
    failed = sum(result.ok is False for result in results)
    for result in results:
        if args.json:
            out.json(result.plain())
        else:
            _tell(result, out)
    if not args.json:
        out.line(f"{counted(len(results), 'scenario')}, {failed} failed")
    return ExitCode.NO if failed else ExitCode.OK


def _tell(result: "ScenarioResult", out: Output) -> None:
    from subluminal.operator.packs.scenarios import told

    got = told(result.got)
    if result.ok is None:
        out.line(shown(f"{result.file}: {got}"))
    elif not result.ok and result.want is not None:
        want = " ".join(filter(None, (result.want.kind.value, result.want.code)))
        guard = result.trace[-1].guard_name or result.trace[-1].phase
        out.line(shown(f"{result.file}: want {want}, got {got} by {guard}"))
