"""Events as a newer version may write them: with words that no vocabulary of this version has.

The Pack allows such words in a new MINOR version, because they are additive (Pack 0.2).
"""

from enum import StrEnum
from functools import reduce
from operator import or_
from types import UnionType
from typing import Any, Union, get_args, get_origin

from msgspec import NODEFAULT, Struct, defstruct, field, structs


def tolerant(kind: Any) -> Any:
    """Returns the type with any string in place of a closed vocabulary, at every depth.

    A struct becomes a subclass of itself.
    """
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return str
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _struct(kind)
    arguments = get_args(kind)
    if not arguments:
        return kind
    changed = tuple(map(tolerant, arguments))
    origin = get_origin(kind)
    return reduce(or_, changed) if origin in (Union, UnionType) else origin[changed]


def _struct(kind: type[Struct]) -> type[Struct]:
    fields: list[Any] = []
    for each in structs.fields(kind):
        changed = tolerant(each.type)
        if changed != each.type:
            default = field(name=each.encode_name, default=each.default)
            if each.default is NODEFAULT:
                default = field(name=each.encode_name)
            fields.append((each.name, changed, default))
    if not fields:
        return kind
    config = kind.__struct_config__
    return defstruct(
        kind.__name__,
        fields,
        bases=(kind,),
        tag=config.tag,
        tag_field=config.tag_field,
        frozen=True,
        kw_only=True,
    )
