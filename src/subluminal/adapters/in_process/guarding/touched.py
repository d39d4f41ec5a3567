"""What a program says about the targets of its tools: commands, paths, URLs, patches."""

from collections.abc import Callable, Mapping, Set
from typing import Any

import msgspec

from subluminal.config.settings import TargetSettings
from subluminal.core.targets.source import Declared

GivenTargets = Mapping[str, str] | Callable[[dict[str, Any]], Mapping[str, Any]] | None
"""Which parameter is which kind of target, or a function that returns the targets by kind."""

_KINDS = ("command", "path", "url", "patch")


def declared(
    given: Mapping[str, str] | Callable[[dict[str, Any]], Mapping[str, Any]],
    parameters: Set[str] | None,
) -> Declared:
    """Returns targets as the core takes them. Raises ValueError if they cannot be meant.

    `parameters` are those of the function; None if they are not the arguments that rules see.
    """
    if not isinstance(given, Mapping):
        return given
    try:
        found = msgspec.convert(dict(given), TargetSettings)
    except msgspec.ValidationError as error:
        raise ValueError(f"`targets`: {error}") from None
    named = [name for kind in _KINDS if (name := getattr(found, kind)) is not None]
    if not named:
        raise ValueError(f"`targets` names none of {', '.join(_KINDS)}")
    for name in named:
        if parameters is not None and name not in parameters:
            raise ValueError(f"`targets` names `{name}`, which is not a parameter")
    return found
