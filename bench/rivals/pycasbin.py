"""casbin with its regex matcher. It sees server and tool only: rules on arguments become names."""

import fnmatch
from collections.abc import Callable, Sequence

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
    # casbin would refuse the call by the name alone, so a rule on arguments never matches here.
    patterns = [
        rule.regex or fnmatch.translate(f"{rule.glob}{'?' * 9 if rule.key else ''}")
        for rule in refusals
    ]
    model = casbin.Enforcer.new_model(text=MODEL)
    enforcer = casbin.Enforcer(model)
    enforcer.add_policies([["*", ".*", "allow"], *(["*", pattern, "deny"] for pattern in patterns)])

    def decide() -> bool:
        return bool(enforcer.enforce(SERVER, tool))

    return decide
