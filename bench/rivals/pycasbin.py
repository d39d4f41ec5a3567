"""casbin with its regex matcher. It sees server and tool only: rules on arguments become names."""

import fnmatch
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import casbin

from bench.rivals.rules import SERVER, Refusal

MODEL = """
[request_definition]
r = server, tool
[policy_definition]
p = server, tool, eft
[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))
[matchers]
m = (p.server == "*" || r.server == p.server) && regexMatch(r.tool, p.tool)
"""


def decider(refusals: Sequence[Refusal], tool: str) -> Callable[[], bool]:
    """Returns a function that decides the measured call; true if it may pass."""
    # A rule on arguments would refuse the call by its name alone: it gets one that never matches.
    patterns = [
        rule.regex or fnmatch.translate(f"{rule.glob}{'?' * 9 if rule.key else ''}")
        for rule in refusals
    ]
    lines = [f'p, *, "{pattern}", deny' for pattern in patterns]
    with TemporaryDirectory() as folder:
        model, policy = Path(folder, "model.conf"), Path(folder, "policy.csv")
        model.write_text(MODEL)
        policy.write_text("\n".join(["p, *, .*, allow", *lines]))
        enforcer = casbin.Enforcer(str(model), str(policy))

    def decide() -> bool:
        return bool(enforcer.enforce(SERVER, tool))

    return decide
