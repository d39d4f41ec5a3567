"""`sub canonical`: turns JSON into canonical bytes or their SHA-256 (canonical-profiles)."""

import sys

from subluminal.canonical import Profile, digest, encode, parse
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.errors import ExitCode

EXAMPLE = """echo '{"b":2,"a":1.0}' | sub canonical
echo '{"b":2,"a":1.0}' | sub canonical --hash"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--profile",
        choices=[profile.value for profile in Profile],
        default=Profile.PACK.value,
        help="pack: Interface Pack 1.9 (default); jcs: RFC 8785; jcs_nfc: jcs over NFC strings",
    )
    parser.add_argument("--hash", action="store_true", help="print the SHA-256 in lowercase hex")
    parser.add_argument("--json", action="store_true", help="print one JSON object with both")


def run(args: Args, out: Output) -> int:
    document = parse(sys.stdin.buffer.read().strip(b" \t\r\n"))
    profile = Profile(args.profile)
    if args.json:
        text = encode(document.value, profile, plain=document.plain)
        out.json(
            {
                "profile": profile,
                "canonical": text.decode(),
                "sha256": digest(document.value, profile, plain=document.plain),
            }
        )
    elif args.hash:
        out.line(digest(document.value, profile, plain=document.plain))
    else:
        # No newline, except for a prompt: these are exactly the bytes that are hashed.
        out.data(encode(document.value, profile, plain=document.plain))
        if out.out_is_terminal:
            out.line("")
    return ExitCode.OK
