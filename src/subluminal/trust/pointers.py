"""Claims of a token by JSON pointer (RFC 6901). Pure."""

from typing import Any

from subluminal.canonical import encode

MISSING = object()


def pointer_problem(pointer: str) -> str | None:
    """Returns why a pointer is refused; None if it is valid."""
    if not pointer.startswith("/"):
        return "a JSON pointer starts with `/`"
    if "~" in pointer.replace("~0", "").replace("~1", ""):
        return "`~` in a JSON pointer is written `~0`, and `/` in a name is written `~1`"
    return None


def value_at(value: Any, pointer: str) -> Any:
    """Returns what a valid pointer leads to; MISSING if that does not exist."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name, MISSING)
        elif isinstance(value, list) and _is_index(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return MISSING
    return value


def is_wanted(found: Any, wanted: Any) -> bool:
    """Whether a claim has the wanted value.

    Wanted text also fits a number or a boolean that JSON writes like that: CI systems differ in
    whether an id is a number or text.
    """
    if isinstance(wanted, str) and type(found) in (bool, int):
        return encode(found).decode() == wanted
    return type(found) is type(wanted) and bool(found == wanted)


def _is_index(name: str) -> bool:
    return name.isascii() and name.isdecimal() and (name == "0" or name[0] != "0")
