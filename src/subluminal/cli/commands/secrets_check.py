"""`sub secrets check`: resolves every binding as a start would, and prints no value."""

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.core.records.redaction.redactor import Redactor, redactor_for
from subluminal.errors import ExitCode, UsageError
from subluminal.operator.secrets_shared import Home, open_home
from subluminal.secrets.resolving import Attempt, attempt_all

EXAMPLE = """sub secrets check
sub secrets check --server github --json"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--server", metavar="NAME", help="only this server's bindings")
    parser.add_argument("--json", action="store_true", help="print one JSON object a binding")


def run(args: Args, out: Output) -> int:
    home = open_home()
    if args.server and args.server not in home.settings.servers:
        raise UsageError(f"no server `{args.server}` in `{home.places.settings}`")
    redactor_for(home.settings.redact)
    failed = 0
    for server, settings in home.settings.servers.items():
        if args.server in (None, server):
            for attempt in attempt_all(settings.secret_bindings, home.sources):
                failed += attempt.problem is not None
                _tell(server, attempt, args.json, out)
    _say_how_it_went(home, failed, args, out)
    return ExitCode.NO if failed else ExitCode.OK


def _tell(server: str, attempt: Attempt, as_json: bool, out: Output) -> None:
    binding, problem = attempt.binding, attempt.problem
    maskable = attempt.value is None or not Redactor([attempt.value], shapes=()).unmaskable
    if as_json:
        out.json(
            {
                "server_name": server,
                "inject_as": binding.inject_as,
                "secret_ref": binding.secret_ref,
                "source": binding.source.value,
                "success": problem is None,
                "masked": binding.redact and maskable,
                "problem": str(problem) if problem else None,
                "hint": problem.hint if problem else None,
            }
        )
        return
    word = out.paint("failed", "red") if problem else out.paint("ok", "green")
    where = f"{server}: {binding.inject_as} from {binding.source.value} `{binding.secret_ref}`"
    out.line(f"{word}  {shown(where)}" + (f": {shown(str(problem))}" if problem else ""))
    if problem and problem.hint:
        out.line(f"  {out.paint('hint', 'cyan')}: {shown(problem.hint)}")
    if not maskable:
        out.warning(f"`{binding.secret_ref}` is too short to be masked in what we record")


def _say_how_it_went(home: Home, failed: int, args: Args, out: Output) -> None:
    if args.json:
        return
    if home.store.contents().protection == "plain" and home.store.contents().secrets:
        out.warning("the file store is not encrypted: it is protected by its mode (0600) only")
    count = sum(1 for server, _ in home.bindings() if args.server in (None, server))
    out.talk(f"{count} bindings, {failed} failed")
