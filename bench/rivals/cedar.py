"""cedarpy with a pre-parsed policy set. Cedar has no regexes: those rules become globs."""

from collections.abc import Callable, Sequence

import cedarpy

from bench.rivals.rules import ARGS, SERVER, Refusal


def decider(refusals: Sequence[Refusal], tool: str) -> Callable[[], bool]:
    """Returns a function that decides the measured call; true if it may pass."""
    text = ["permit (principal, action, resource);", *(_policy(rule) for rule in refusals)]
    policies = cedarpy.PolicySet.from_str("\n".join(text))
    entities = cedarpy.Entities.from_json_str("[]")
    request = {
        "principal": 'Agent::"fixer"',
        "action": 'Action::"call"',
        "resource": f'Tool::"{tool}"',
        "context": {"server": SERVER, "tool": tool, "args": ARGS},
    }

    def decide() -> bool:
        return bool(cedarpy.is_authorized(request, policies, entities).allowed)

    return decide


def _policy(rule: Refusal) -> str:
    clauses = [f'context.tool like "{rule.glob or rule.glob_of_regex}"']
    if rule.key:
        clauses.append(f"context.args has {rule.key}")
    if rule.equals is not None:
        clauses.append(f'context.args.{rule.key} == "{rule.equals}"')
    if rule.at_least is not None:
        clauses.append(f"context.args.{rule.key} >= {rule.at_least}")
    return f"forbid (principal, action, resource) when {{ {' && '.join(clauses)} }};"
