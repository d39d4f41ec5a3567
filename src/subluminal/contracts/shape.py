"""Finds every misfit between a value and a type; a decoder would stop at the first one.

For files that people write: bundles, cases, settings. A misfit has a path inside the value; the
caller turns that into a line and column. Pure.
"""

import difflib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

Path = tuple[str | int, ...]

_NOUNS: dict[type, str] = {
    dict: "a mapping",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    type(None): "nothing",
}


class Misfit(NamedTuple):
    """One part of a value that does not fit. If `at_key`, its key is wrong, not its value."""

    path: Path
    message: str
    hint: str | None = None
    at_key: bool = False


def misfits(value: Any, type_: Any) -> list[Misfit]:
    """Returns every misfit between `value` and `type_`; an empty list if the value fits."""
    return list(_check(value, inspect.type_info(type_), ()))


def did_you_mean(word: object, known: Iterable[str]) -> str | None:
    """Returns a hint with the closest known word, or with all known words if there are few."""
    names = list(known)
    close = difflib.get_close_matches(str(word), names, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    if names and len(names) <= 12:
        return "one of " + ", ".join(f"`{name}`" for name in names)
    return None


def noun_of(value: Any) -> str:
    """Returns a plain English noun for the type of a value."""
    return _NOUNS.get(type(value), "something else")


def _check(value: Any, info: inspect.Type, path: Path) -> Iterator[Misfit]:
    match info:
        case inspect.AnyType():
            return
        case inspect.UnionType():
            yield from _check_union(value, info, path)
        case inspect.StructType():
            yield from _check_struct(value, info, path)
        case inspect.ListType() | inspect.VarTupleType():
            yield from _check_list(value, info, path)
        case inspect.DictType():
            yield from _check_dict(value, info, path)
        case inspect.EnumType():
            yield from _check_words(value, [str(member.value) for member in info.cls], path)
        case inspect.LiteralType():
            yield from _check_words(value, [str(word) for word in info.values], path)
        case _:
            yield from _check_scalar(value, info, path)


_SCALARS: dict[type, tuple[tuple[type, ...], str]] = {
    inspect.StrType: ((str,), "a string"),
    inspect.BoolType: ((bool,), "true or false"),
    inspect.IntType: ((int,), "a whole number"),
    inspect.FloatType: ((int, float), "a number"),
    inspect.NoneType: ((type(None),), "nothing"),
}


def _check_scalar(value: Any, info: inspect.Type, path: Path) -> Iterator[Misfit]:
    types, noun = _SCALARS[type(info)]
    if type(value) not in types:
        yield Misfit(path, f"expected {noun}, got {_told(value)}", _quote_hint(value, noun))
        return
    least = getattr(info, "ge", None)
    if least is not None and value < least:
        yield Misfit(path, f"expected {noun} of at least {least}, got `{value}`")


def _quote_hint(value: Any, noun: str) -> str | None:
    if noun == "a string" and isinstance(value, int | float):
        return "put it in quotes to make it a string"
    return None


def _told(value: Any) -> str:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return f"{noun_of(value)} `{str(value)[:40]}`"
    return noun_of(value)


def _check_words(value: Any, words: list[str], path: Path) -> Iterator[Misfit]:
    if not isinstance(value, str):
        yield Misfit(path, f"expected one of {_list(words)}, got {_told(value)}")
    elif value not in words:
        yield Misfit(path, f"unknown value `{value[:40]}`", did_you_mean(value, words))


def _list(words: list[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _check_list(
    value: Any, info: inspect.ListType | inspect.VarTupleType, path: Path
) -> Iterator[Misfit]:
    if not isinstance(value, list):
        yield Misfit(path, f"expected a list, got {_told(value)}")
        return
    for index, item in enumerate(value):
        yield from _check(item, info.item_type, (*path, index))


def _check_dict(value: Any, info: inspect.DictType, path: Path) -> Iterator[Misfit]:
    if not isinstance(value, dict):
        yield Misfit(path, f"expected a mapping, got {_told(value)}")
        return
    for key, item in value.items():
        if not isinstance(key, str):
            yield Misfit(path, f"expected a string as key, got {_told(key)}")
        yield from _check(item, info.value_type, (*path, key))


def _check_union(value: Any, info: inspect.UnionType, path: Path) -> Iterator[Misfit]:
    structs = [kind for kind in info.types if isinstance(kind, inspect.StructType)]
    if structs and structs[0].tag_field is not None:
        yield from _check_tagged(value, structs, path)
        return
    rounds = [list(_check(value, kind, path)) for kind in info.types]
    if all(rounds):
        # The author meant the type whose misfit lies deepest, and never `nothing`.
        meant = [
            found
            for kind, found in zip(info.types, rounds, strict=True)
            if not isinstance(kind, inspect.NoneType)
        ]
        deepest = max(meant, key=lambda found: max(len(misfit.path) for misfit in found))
        if len(meant) > 1 and max(len(misfit.path) for misfit in deepest) == len(path):
            nouns = [_SCALARS[type(kind)][1] for kind in info.types if type(kind) in _SCALARS]
            yield Misfit(path, f"expected {' or '.join(nouns)}, got {_told(value)}")
        else:
            yield from deepest


def _check_tagged(value: Any, structs: list[inspect.StructType], path: Path) -> Iterator[Misfit]:
    tag_field = str(structs[0].tag_field)
    if not isinstance(value, dict):
        yield Misfit(path, f"expected a mapping, got {_told(value)}")
        return
    tags = {str(struct.tag): struct for struct in structs}
    if tag_field not in value:
        yield Misfit(path, f"missing field `{tag_field}`", "one of " + _list(list(tags)))
        return
    tag = value[tag_field]
    struct = tags.get(tag) if isinstance(tag, str) else None
    if struct is None:
        yield Misfit(
            (*path, tag_field),
            f"unknown rule {tag_field} `{str(tag)[:40]}`",
            did_you_mean(tag, tags),
        )
        return
    yield from _check_struct(value, struct, path)


def _check_struct(value: Any, info: inspect.StructType, path: Path) -> Iterator[Misfit]:
    if not isinstance(value, dict):
        yield Misfit(path, f"expected a mapping, got {_told(value)}")
        return
    fields = {field.encode_name: field for field in info.fields}
    names = [*fields, info.tag_field] if info.tag_field else list(fields)
    if info.forbid_unknown_fields:
        for key in value:
            if key not in names:
                hint = did_you_mean(key, names)
                yield Misfit((*path, key), f"unknown field `{str(key)[:60]}`", hint, at_key=True)
    for name, field in fields.items():
        if name in value:
            yield from _check(value[name], field.type, (*path, name))
        elif field.required:
            yield Misfit(path, f"missing field `{name}`", _expecting(field.type))


def _expecting(info: inspect.Type) -> str | None:
    match info:
        case inspect.EnumType():
            return "one of " + _list([str(member.value) for member in info.cls])
        case inspect.LiteralType():
            return "one of " + _list([str(word) for word in info.values])
        case inspect.StructType():
            example = info.cls.__name__ in ("Match", "Selectors")
            return "write `{}` to match everything" if example else None
        case _:
            return None


def struct_of(value: Any, type_: type[Any]) -> Any:
    """Converts a value that has no misfits to its type."""
    return msgspec.convert(value, type_)
