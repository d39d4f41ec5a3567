"""A misfit at a path becomes a problem at a place, in words that name the rule and the field."""

from collections.abc import Callable

from subluminal.contracts.shape import Misfit, Path
from subluminal.errors import Problem
from subluminal.policy.text.places import Node

Title = Callable[[Path], tuple[str, Path]]
"""Names what a path begins with, as a person would, and returns the rest of the path."""

_NO_BOOLEANS = frozenset({"yes", "no", "on", "off"})


def problem_of(
    misfit: Misfit, node: Node, file: str, title: Title, severity: str = "error"
) -> Problem:
    """Tells one misfit with its place."""
    name, rest = title(misfit.path)
    place = node.find(misfit.path, at_key=misfit.at_key)
    message = name + _sentence(misfit, rest)
    return Problem(message, file, *place, misfit.hint or _boolean_hint(misfit.message), severity)


def _sentence(misfit: Misfit, rest: Path) -> str:
    if misfit.at_key or misfit.message.startswith("missing field"):
        where = path_text(rest[:-1] if misfit.at_key else rest)
        return f"{misfit.message} in `{where}`" if where else misfit.message
    # The message of an unknown kind names its field itself.
    if not rest or misfit.message.startswith("unknown rule"):
        return misfit.message
    return f"`{path_text(rest)}`: {misfit.message}"


def path_text(path: Path) -> str:
    """`effect.suggest.amount`, `rules[2]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part[:60]}"
    return text


def _boolean_hint(message: str) -> str | None:
    if message.startswith("expected true or false") and message.endswith("`"):
        word = message.rstrip("`").rpartition("`")[2]
        if word.lower() in _NO_BOOLEANS:
            return f"in YAML 1.2 `{word}` is a string: write `true` or `false`"
    return None
