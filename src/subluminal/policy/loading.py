"""Text to bundle (Pack 2.1): all that is wrong with it at once, each with its line and column.

A bundle is loaded whole or not at all. Pure: callers read the file.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from subluminal.contracts.bundle import AnyRule, Bundle
from subluminal.contracts.limits import MAX_RULES
from subluminal.contracts.shape import Misfit, Path, misfits, struct_of
from subluminal.errors import InvalidInput, Problem
from subluminal.policy.checking import rule_misfits, semantic_misfits
from subluminal.policy.text.places import Node
from subluminal.policy.text.reading import read_document
from subluminal.policy.text.telling import Title, problem_of


class LoadedBundle(NamedTuple):
    """A bundle in which nothing is wrong, and where its parts stand."""

    bundle: Bundle
    value: Any
    """as written, defaults not filled in"""
    node: Node
    file: str


def parse_bundle(data: bytes, file: str) -> LoadedBundle:
    """Loads a bundle from YAML or JSON text, or raises InvalidInput with every problem."""
    document, problems = read_document(data, file)
    return bundle_in(document.value, document.node, file, problems)


def bundle_in(value: Any, node: Node, file: str, problems: Sequence[Problem] = ()) -> LoadedBundle:
    """Loads a bundle that is already plain data, such as the one inside a case."""
    found = [problem_of(misfit, node, file, rule_title(value)) for misfit in _misfits(value)]
    # What could not be read as text is told once, not again as a value of the wrong type.
    told = {(problem.line, problem.column) for problem in problems}
    all_problems = [*problems, *(each for each in found if (each.line, each.column) not in told)]
    if all_problems:
        raise InvalidInput(sorted(all_problems, key=lambda each: (each.line, each.column)))
    return LoadedBundle(struct_of(value, Bundle), value, node, file)


def _misfits(value: Any) -> list[Misfit]:
    rules = value.get("rules") if isinstance(value, dict) else None
    if isinstance(rules, list) and len(rules) > MAX_RULES:
        return [Misfit(("rules",), f"{len(rules)} rules; at most {MAX_RULES} are read")]
    structural = misfits(value, Bundle)
    if not structural:
        return semantic_misfits(struct_of(value, Bundle))
    return structural + _misfits_of_sound_rules(rules, structural)


def _misfits_of_sound_rules(rules: Any, structural: list[Misfit]) -> list[Misfit]:
    """Looks into the rules that have their shape, although others have not."""
    if not isinstance(rules, list):
        return []
    broken = {
        found.path[1] for found in structural if found.path[:1] == ("rules",) and found.path[1:]
    }
    return [
        misfit
        for index, rule in enumerate(rules)
        if index not in broken
        for misfit in rule_misfits(msgspec.convert(rule, AnyRule), index)
    ]


def rule_title(value: Any) -> Title:
    """Names rules by their id where they have one, else by their number."""

    def title(path: Path) -> tuple[str, Path]:
        if len(path) < 2 or path[0] != "rules":
            return "", path
        rule = value["rules"][path[1]]
        rule_id = rule.get("rule_id") if isinstance(rule, dict) else None
        if isinstance(rule_id, str) and rule_id:
            return f"rule `{rule_id[:60]}`: ", path[2:]
        return f"rule {int(path[1]) + 1}: ", path[2:]

    return title
