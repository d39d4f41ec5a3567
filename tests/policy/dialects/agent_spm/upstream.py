"""Agent-SPM's evaluator once more, as literally as its documented behaviour allows.

A second, independent oracle: plain loops, no compilation, JavaScript's notions of truth, equality
and text. `ours` names the differences that we chose; with an empty set it is Agent-SPM.
"""

import re
from dataclasses import dataclass, field
from typing import Any

LEVELS = ["untrusted", "basic", "verified", "privileged", "system"]
JS_SPACE = "[\\t-\\r \\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff]"

EXPRESSIONS = {
    "^select\\s+\\*": f"^select{JS_SPACE}+\\*",
    "a.c": "a[^\\n\\r\\u2028\\u2029]c",
    "\\d{3}-\\d{2}": "[0-9]{3}-[0-9]{2}",
    "^x$": "\\Ax\\Z",
    "true|10": "true|10",
    "[^a-z]z": "[^a-z]z",
    "(a+)+b": "(?:a+)+b",
    "(x|y)+z": "(?:x|y)+z",
}
"""Patterns of JavaScript, each with its meaning in Python's syntax, written by hand."""
SKIPPED = {"(a+)+b", "(x|y)+z"}
"""Those that Agent-SPM takes for dangerous."""

DIFFERENCES = {
    "skipped patterns are enforced": "RE2 takes linear time, so a rule need not be left out",
    "an agent without a level is untrusted": "every agent has a level: that of a stranger",
    "a tool without a provider is of mcp": "the door knows what provides its tools",
    "texts are compared with full case folding": "`STRASSE` is part of `Straße`",
    "large integers are exact": "9007199254740993 is not 9007199254740992",
}
"""What we decide otherwise, each with its reason. Claims are another: see test_attacks."""


@dataclass
class Request:
    """One call as Agent-SPM is asked about it. None is a member that is missing."""

    tool: str
    args: dict[str, Any]
    environment: str = "dev"
    agent_type: str | None = None
    trust_level: str | None = None
    roles: list[str] | None = None
    provider: str | None = None
    user_input: str | None = None
    labels: list[str] = field(default_factory=list)


def decide(bundle: dict[str, Any], asked: Request, ours: frozenset[str]) -> tuple[str, str]:
    """The outcome, and the code of its reason."""
    for rule in bundle["rules"]:
        if matches(rule["match"], asked, ours) and holds(rule.get("when"), asked, ours):
            return rule["outcome"], rule["id"]
    default = bundle["defaults"]["outcome"]
    return default, f"DEFAULT_{default}"


def matches(match: dict[str, Any], asked: Request, ours: frozenset[str]) -> bool:
    trust = asked.trust_level
    if trust is None and "an agent without a level is untrusted" in ours:
        trust = "untrusted"
    provider = asked.provider
    if provider is None and "a tool without a provider is of mcp" in ours:
        provider = "mcp"
    least = match.get("trust_level_min")
    roles = match.get("agent_roles_any") or []
    return (
        tool_matches(match["tool_name"], asked.tool)
        and match["environment"] in ("*", asked.environment)
        and member(match.get("agent_type"), asked.agent_type)
        and (not least or (bool(trust) and LEVELS.index(trust) >= LEVELS.index(least)))
        and (not roles or any(role in (asked.roles or []) for role in roles))
        and member(match.get("tool_provider"), provider)
    )


def tool_matches(wanted: str | list[str], tool: str) -> bool:
    if wanted == "*":
        return True
    if isinstance(wanted, list):
        return tool in wanted
    if wanted.endswith("*"):
        return tool.startswith(wanted[:-1])
    return tool == wanted


def member(wanted: str | list[str] | None, found: str | None) -> bool:
    if not wanted:
        return True
    return bool(found) and (found in wanted if isinstance(wanted, list) else found == wanted)


def holds(when: dict[str, Any] | None, asked: Request, ours: frozenset[str]) -> bool:
    when = when or {}
    values = ([asked.user_input] if asked.user_input else []) + texts_in(asked.args)

    def fold(text: str) -> str:
        full = "texts are compared with full case folding" in ours
        return text.casefold() if full else text.lower()

    def occurs(words: list[str]) -> bool:
        return any(fold(word) in fold(value) for word in words for value in values)

    if when.get("contains_any") and not occurs(when["contains_any"]):
        return False
    if when.get("not_contains") and occurs(when["not_contains"]):
        return False
    pattern = when.get("matches_regex")
    if pattern:
        if pattern in SKIPPED and "skipped patterns are enforced" not in ours:
            return False
        if not re.search(EXPRESSIONS[pattern], " ".join(values), re.IGNORECASE | re.ASCII):
            return False
    labels = when.get("data_labels_any")
    if labels and not any(label in asked.labels for label in labels):
        return False
    wanted = when.get("tool_args_match") or {}
    return all(arg_holds(each, asked.args, key, ours) for key, each in wanted.items())


def texts_in(value: Any) -> list[str]:
    """Every text, number and boolean, written as JavaScript's String() writes it."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, int | float):
        return [number_text(value)]
    if isinstance(value, list):
        return [text for item in value for text in texts_in(item)]
    if isinstance(value, dict):
        return [text for item in value.values() for text in texts_in(item)]
    return []


def number_text(number: float) -> str:
    """JavaScript's Number::toString, from ECMA-262: digits, and where the point stands."""
    double = float(number)
    if double == 0:
        return "0"
    if double < 0:
        return "-" + number_text(-double)
    mantissa, exponent = f"{double:.17e}".split("e")
    for places in range(17):  # the shortest digits that give the same double
        mantissa, exponent = f"{double:.{places}e}".split("e")
        if float(f"{mantissa}e{exponent}") == double:
            break
    digits, point = mantissa.replace(".", "").rstrip("0"), int(exponent) + 1
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    head = digits if count == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{head}e{'+' if point > 0 else '-'}{abs(point - 1)}"


_MISSING = object()


def arg_holds(wanted: Any, args: dict[str, Any], key: str, ours: frozenset[str]) -> bool:
    found = args.get(key, _MISSING)
    if not isinstance(wanted, dict):
        return strictly_equal(found, wanted, ours)
    number = float(found) if is_number(found) else None
    return (
        ("gt" not in wanted or (number is not None and number > wanted["gt"]))
        and ("gte" not in wanted or (number is not None and number >= wanted["gte"]))
        and ("lt" not in wanted or (number is not None and number < wanted["lt"]))
        and ("lte" not in wanted or (number is not None and number <= wanted["lte"]))
        and ("eq" not in wanted or strictly_equal(found, wanted["eq"], ours))
        and ("neq" not in wanted or not strictly_equal(found, wanted["neq"], ours))
    )


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def strictly_equal(left: Any, right: Any, ours: frozenset[str]) -> bool:
    """JavaScript's `===`: two lists or objects are never the same one here."""
    if is_number(left) and is_number(right):
        return left == right if "large integers are exact" in ours else float(left) == float(right)
    if isinstance(left, list | dict) or isinstance(right, list | dict):
        return False
    return type(left) is type(right) and left == right
