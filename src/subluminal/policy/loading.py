"""Text to bundle (Pack 2.1): all that is wrong with it at once, each with its line and column.

A bundle is loaded whole or not at all. Pure: callers read the file.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from subluminal.contracts.bundle import AnyRule, Bundle
from subluminal.contracts.shape import Misfit, Path, misfits
from subluminal.errors import InvalidInput, Problem
from subluminal.policy.checking import rule_misfits, semantic_misfits
from subluminal.policy.text.places import Node
from subluminal.policy.text.reading import read_document
from subluminal.policy.text.telling import Title, problem_of
from subluminal.policy.text.yaml_nodes import MAX_PROBLEMS

MAX_FIELDS = 2_000
"""Fields of one mapping in a file that is no bundle. No mapping of ours has twenty."""


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
    try:
        bundle = msgspec.convert(value, Bundle)
    except msgspec.ValidationError:
        found = _shape_misfits(value)
    else:
        found = semantic_misfits(bundle)
        if not found and not problems:
            return LoadedBundle(bundle, value, node, file)
    title = rule_title(value)
    told = [problem_of(misfit, node, file, title) for misfit in found[:MAX_PROBLEMS]]
    # What could not be read as text is told once, not again as a value of the wrong type.
    places = {(problem.line, problem.column) for problem in problems}
    told = [*problems, *(each for each in told if (each.line, each.column) not in places)]
    raise InvalidInput(sorted(told, key=lambda each: (each.line, each.column)))


def _shape_misfits(value: Any) -> list[Misfit]:
    """Says all that is wrong with a value that is no bundle: its head, then rule by rule."""
    wide = next(_too_wide(value, ()), None)
    if wide is not None:
        return [wide]
    rules = value.get("rules") if isinstance(value, dict) else None
    if not isinstance(rules, list):
        return misfits(value, Bundle)
    found = misfits({**value, "rules": []}, Bundle)
    for index, rule in enumerate(rules):
        # A file of nothing but mistakes is given up early.
        if len(found) >= MAX_PROBLEMS:
            break
        found += _rule_misfits(rule, index)
    return found


def _rule_misfits(rule: Any, index: int) -> list[Misfit]:
    try:
        return rule_misfits(msgspec.convert(rule, AnyRule), index)
    except msgspec.ValidationError:
        found = misfits(rule, AnyRule)
    return [misfit._replace(path=("rules", index, *misfit.path)) for misfit in found]


def _too_wide(value: Any, path: Path) -> Iterator[Misfit]:
    """Each unknown field costs a search for the name that was meant; so their number is bounded."""
    if isinstance(value, dict) and len(value) > MAX_FIELDS:
        yield Misfit(path, f"{len(value)} fields; at most {MAX_FIELDS} are read")
    elif isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _too_wide(item, (*path, key))


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
