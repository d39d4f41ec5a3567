"""`sub policy compile FILE`: prints the snapshot as JSON with its policy_hash (Pack 2.6).

With `--as bundle` it prints the bundle that was compiled, such as one that was converted from
another language.
"""

import json

import msgspec

from subluminal.cli.files import load_policy, write_output
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.policy_terms import add_dialect, add_signature, terms_of
from subluminal.errors import ExitCode

EXAMPLE = """sub policy compile policy.yaml
sub policy compile policy.yaml -o policy.snapshot.json
sub policy compile agent-spm.json --as bundle"""

_SNAPSHOT, _BUNDLE = "snapshot", "bundle"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="a bundle; `-` reads stdin")
    parser.add_argument(
        "-o", "--output", metavar="PATH", help="write to this file instead of stdout"
    )
    parser.add_argument(
        "--as",
        dest="as_",
        choices=[_SNAPSHOT, _BUNDLE],
        default=_SNAPSHOT,
        help="default snapshot; bundle: what was compiled, in the Pack's language",
    )
    add_dialect(parser)
    add_signature(parser)
    parser.add_argument(
        "--json", action="store_true", help="accepted and ignored: the output is always JSON"
    )


def run(args: Args, out: Output) -> int:
    policy = load_policy(args.file, terms_of(args))
    if args.as_ == _BUNDLE:
        plain = msgspec.to_builtins(policy.bundle)
        text = json.dumps(plain, ensure_ascii=False, indent=2).encode() + b"\n"
    else:
        text = policy.snapshot.to_json() + b"\n"
    if args.output is None:
        out.data(text)
    else:
        write_output(args.output, [text], 0o644)
    return ExitCode.OK
