"""`sub agents verify ID --token-file F`: whether a token proves an agent."""

import os

from subluminal.cli.commands.agents_show import add_token, read_token, wall_ms
from subluminal.cli.frame import Args, Parser, sentence
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.contracts.vocabulary import ProofKind
from subluminal.errors import ExitCode
from subluminal.operator.agents import proof_row, verify

EXAMPLE = """sub agents verify fixer --token-file token.jwt
sub agents attest fixer | sub agents verify fixer --token-file - --json"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("id", type=sentence, metavar="ID", help="a registered agent")
    add_token(parser, required=True)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    token = read_token(args.token_file)
    checked = verify(places(os.environ), args.id, token, wall_ms(args.at))
    proof = checked.proof
    valid = proof.kind is ProofKind.ATTESTED
    if args.json:
        row = proof_row(proof)
        del row["kind"]
        out.json({"valid": valid, **row})
    elif valid:
        bound = f", only in run {checked.run_id}" if checked.run_id else ""
        proven = f"{proof.issuer} as {proof.subject}, until {proof.expires_at}{bound}"
        out.line(shown(f"valid: it proves `{args.id}`, by {proven}"))
    else:
        out.line(shown(f"not valid: {proof.problem}"))
        if checked.hint:
            out.talk(checked.hint)
    return ExitCode.OK if valid else ExitCode.NO
