"""`sub policy accept [FILE]`: puts a loosened repository policy into force for runs under way.

During a run the strictest of the first-seen and the current repository policy holds, so that an
agent cannot loosen the policy by editing the file (policy-layers). With this command a person can.
It is not for agents (local-is-not-trusted).
"""

import os

from subluminal.cli.asking import need_person
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.errors import ExitCode
from subluminal.operator.policies import accept_policy

EXAMPLE = """sub policy accept
sub policy accept ../other/.subluminal/policy.yaml"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="default: the nearest .subluminal/policy.yaml"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    where = places(os.environ)
    need_person("sub policy accept", where)
    done = accept_policy(where, os.getcwd(), args.file)
    if args.json:
        out.json({"file": done.file, "policy_hash": done.policy_hash, "runs_accepted": done.runs})
    elif done.runs:
        runs = "1 run" if done.runs == 1 else f"{done.runs} runs"
        out.line(f"`{shown(done.file)}` is now in force for {runs}")
    else:
        out.line("nothing to accept: no run started under another version")
    return ExitCode.OK
