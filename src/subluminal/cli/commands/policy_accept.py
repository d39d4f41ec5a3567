"""`sub policy accept [FILE]`: a person lets a loosened repository policy hold for runs under way.

During a run the strictest of the first-seen and the current repository policy holds, so that an
agent cannot loosen it by an edit (policy-layers). This is the way out, and it is not for agents (local-is-not-trusted).
"""

import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.core.policies.files import repository_policy
from subluminal.core.policies.pins import SeenPolicy, accept
from subluminal.errors import ExitCode, SubluminalError
from subluminal.operator.person import need_person
from subluminal.operator.policy_files import load_policy

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
    path = args.file or repository_policy(where, os.getcwd())
    if path is None:
        raise SubluminalError(
            "there is no repository policy here",
            hint="name the file, or go to the repository that has `.subluminal/policy.yaml`",
        )
    path = os.path.abspath(path)
    policy = load_policy(path).snapshot
    accepted = accept(where, SeenPolicy(path, policy))
    if args.json:
        out.json({"file": path, "policy_hash": policy.policy_hash, "runs_accepted": len(accepted)})
    elif accepted:
        runs = "1 run" if len(accepted) == 1 else f"{len(accepted)} runs"
        out.line(f"`{shown(path)}` now holds for {runs}")
    else:
        out.line("no run first saw another version: nothing to accept")
    return ExitCode.OK
