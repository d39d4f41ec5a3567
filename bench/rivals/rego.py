"""regopy (rego-cpp) with a compiled bundle: one `deny` set, asked whether it is empty."""

import json
from collections.abc import Callable, Sequence

import regopy

from bench.rivals.rules import ARGS, SERVER, Refusal


def decider(refusals: Sequence[Refusal], tool: str) -> Callable[[], bool]:
    """Returns a function that decides the measured call; true if it may pass."""
    interpreter = regopy.Interpreter()
    module = ["package policy", "default allow := false", "allow if count(deny) == 0"]
    interpreter.add_module("policy.rego", "\n".join([*module, *map(_rule, refusals)]))
    bundle = interpreter.build(None, ["policy/allow"])
    call = {"server": SERVER, "tool": tool, "args": ARGS}

    def decide() -> bool:
        interpreter.set_input(call)
        output = interpreter.query_bundle_entrypoint(bundle, "policy/allow")
        return "true" in str(output)

    return decide


def _rule(rule: Refusal) -> str:
    if rule.regex:
        clauses = [f"regex.match({json.dumps(rule.regex)}, input.tool)"]
    else:
        clauses = [f"glob.match({json.dumps(rule.glob)}, [], input.tool)"]
    if rule.equals is not None:
        clauses.append(f"input.args.{rule.key} == {json.dumps(rule.equals)}")
    if rule.at_least is not None:
        clauses.append(f"input.args.{rule.key} >= {rule.at_least}")
    return f"deny contains {json.dumps(rule.name)} if {{ {'; '.join(clauses)} }}"
