"""`sub secrets check`: resolves every binding as a server's start would, and prints no value."""

import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.core.records.redaction.redactor import Redactor, redactor_for
from subluminal.errors import ExitCode
from subluminal.operator.secrets import open_secrets, try_bindings
from subluminal.secrets.resolving import Attempt

EXAMPLE = """sub secrets check
sub secrets check --server github --json"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--server", metavar="NAME", help="only the bindings of this server")
    parser.add_argument("--json", action="store_true", help="print one JSON object per binding")


def run(args: Args, out: Output) -> int:
    home = open_secrets(os.environ)
    redactor_for(home.settings.redact)  # raises if a pattern cannot be used
    count = failed = 0
    for server, attempt in try_bindings(home, args.server or None):
        count += 1
        failed += attempt.problem is not None
        _tell(server, attempt, args.json, out)
    if not args.json:
        if home.is_store_plain:
            out.warning("the file store is not encrypted; only its mode (0600) protects it")
        out.talk(f"{count} binding{'' if count == 1 else 's'}, {failed} failed")
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
        out.warning(f"`{binding.secret_ref}` is too short to be masked in records")
