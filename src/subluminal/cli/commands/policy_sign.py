"""`sub policy sign FILE --hmac-key-file KEY`: prints a bundle of Agent-SPM with its signature."""

import json

from subluminal.cli.files import display_name, read_file, write_output
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.errors import ExitCode
from subluminal.operator.policies import sign_policy

EXAMPLE = """sub policy sign bundle.json --hmac-key-file policy.key -o signed.json
sub policy lint signed.json --hmac-key-file policy.key"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="a bundle of Agent-SPM; `-` reads stdin")
    parser.add_argument(
        "--hmac-key-file",
        required=True,
        metavar="KEY",
        help="a file with mode 0600 that holds the key",
    )
    parser.add_argument(
        "--legacy-signature",
        action="store_true",
        help="sign as Agent-SPM does, for its own loader: the rules are not protected",
    )
    parser.add_argument(
        "-o", "--output", metavar="PATH", help="write to this file instead of stdout"
    )
    parser.add_argument(
        "--json", action="store_true", help="accepted and ignored: the output is always JSON"
    )


def run(args: Args, out: Output) -> int:
    name = display_name(args.file)
    signed = sign_policy(
        read_file(args.file), name, args.hmac_key_file, legacy=args.legacy_signature
    )
    text = json.dumps(signed, ensure_ascii=False, indent=2).encode() + b"\n"
    if args.legacy_signature:
        out.warning(f"the signature of `{shown(name)}` does not cover its rules")
    if args.output is None:
        out.data(text)
    else:
        write_output(args.output, [text], 0o644)
    return ExitCode.OK
