"""`sub policy compile FILE`: the snapshot as JSON, with its policy_hash (Pack 2.6)."""

import os
import tempfile

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.policy_files import load_policy
from subluminal.errors import ExitCode, SubluminalError

EXAMPLE = """sub policy compile policy.yaml
sub policy compile policy.yaml -o policy.snapshot.json"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="a bundle; `-` reads stdin")
    parser.add_argument("-o", "--output", metavar="PATH", help="write it there, not to stdout")
    parser.add_argument("--json", action="store_true", help="the output is JSON with or without")


def run(args: Args, out: Output) -> int:
    text = load_policy(args.file).snapshot.to_json() + b"\n"
    if args.output is None:
        out.data(text)
    else:
        _replace(args.output, text)
    return ExitCode.OK


def _replace(path: str, text: bytes) -> None:
    """Puts a file in place whole: a shim that reads it meanwhile sees the old or the new."""
    directory = os.path.dirname(path) or "."
    try:
        handle, temporary = tempfile.mkstemp(prefix=".snapshot-", dir=directory)
        try:
            with open(handle, "wb") as file:
                file.write(text)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise SubluminalError(
            f"cannot write `{path}`: {(error.strerror or str(error)).lower()}"
        ) from None
