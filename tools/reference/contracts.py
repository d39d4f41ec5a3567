"""Generates the pages of the contracts: events, bundle, decisions, secret bindings, limits."""

import enum
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect
from tools.field_docs import constants_of, doc_of, one_line
from tools.reference.markdown import page, table

from subluminal.contracts import PACK_VERSION, limits, short_forms
from subluminal.contracts.bindings import ServerBindings
from subluminal.contracts.bundle import Bundle
from subluminal.contracts.decision import Decision, ErrorData
from subluminal.contracts.events import EVENTS, REQUIRED_EVENTS, Event
from subluminal.contracts.vocabulary import ErrorCode, McpErrorCode

_WORDS: dict[type, str] = {
    inspect.StrType: "string",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.BoolType: "boolean",
    inspect.NoneType: "null",
    inspect.AnyType: "any",
    inspect.RawType: "object",
}


def pages() -> dict[str, str]:
    """Returns the pages of the three contracts and of the limits."""
    return {
        "docs/reference/events.md": _events(),
        "docs/reference/bundle.md": _bundle(),
        "docs/reference/decisions.md": _decisions(),
        "docs/reference/secret-bindings.md": page(
            "Secret bindings", "Interface Pack 4.1.", *_sections(ServerBindings)
        ),
        "docs/reference/limits.md": _limits(),
    }


def _events() -> str:
    envelope = set(Event.__struct_fields__)
    parts = [
        f"Contract A of the Interface Pack {PACK_VERSION}: JSONL, one object per line. Consumers "
        "ignore fields and types they do not know. The schema is `schema/event.schema.json`.",
        "## The envelope\n\n" + _doc(Event),
        _fields(Event),
    ]
    for event in EVENTS:
        need = "required" if event in REQUIRED_EVENTS else "optional"
        parts += [
            f"## {event.__struct_config__.tag}\n\n{_doc(event)} This type is {need}.",
            _fields(event, leave_out=envelope),
        ]
    return page("Events", *parts, "# Objects", *_sections(*EVENTS, skip=EVENTS))


def _bundle() -> str:
    return page(
        "Policy bundle",
        "Contract B: what a policy's author writes, in YAML or JSON. Unknown fields are errors. "
        "A bundle in JSON is complete; its schema is `schema/bundle.schema.json`. In YAML, some "
        "fields may be left out; that schema is `schema/policy.schema.json`.",
        "## What YAML may leave out",
        "The compiled policy is complete: the short and the long form of a policy have the same "
        "`policy_hash`.",
        table(["in", "field", "default"], list(_short_forms())),
        *_sections(Bundle),
    )


def _short_forms() -> Iterator[tuple[str, ...]]:
    yield from _defaults_in("the bundle", short_forms.BUNDLE)
    common = ("enabled", "match")
    kinds = short_forms.RULES
    yield from _defaults_in("all rules", {name: kinds["deny"][name] for name in common})
    for kind, template in kinds.items():
        rest = {name: value for name, value in template.items() if name not in common}
        yield from _defaults_in(f"`{kind}` rules", rest)


def _defaults_in(where: str, template: dict[str, Any], path: str = "") -> Iterator[tuple[str, ...]]:
    for name, default in template.items():
        if isinstance(default, dict) and default:
            yield from _defaults_in(where, default, f"{path}{name}.")
        else:
            yield where, f"`{path}{name}`", f"`{msgspec.json.encode(default).decode()}`"


def _decisions() -> str:
    codes = [
        (f"`{code.value}`", f"`{McpErrorCode[code.name].value}`", code.name) for code in ErrorCode
    ]
    return page(
        "Decisions and errors",
        "Contract C: what is decided, and the JSON-RPC error that a refused call gets.",
        "## Error codes",
        table(["code", 'with `codes = "mcp"`', "name"], codes),
        *_sections(Decision, ErrorData),
    )


def _limits() -> str:
    rows = [(f"`{name}`", f"`{value}`", one_line(doc)) for name, value, doc in constants_of(limits)]
    return page("Limits", "Bounds that both sides of the wire rely on.", table(_LIMITS, rows))


_LIMITS = ["name", "value", "meaning"]


def _sections(*roots: type, skip: tuple[type, ...] = ()) -> list[str]:
    """Returns a section for every struct and enum that the roots use, in order of first mention."""
    seen: dict[type, None] = {}
    for root in roots:
        _visit(inspect.type_info(root), seen)
    return [_section(cls) for cls in seen if cls not in skip]


def _visit(info: inspect.Type, seen: dict[type, None]) -> None:
    for child in _children(info):
        _visit(child, seen)
    cls = getattr(info, "cls", None)
    if cls is None or cls in seen:
        return
    seen[cls] = None
    if isinstance(info, inspect.StructType):
        for field in info.fields:
            _visit(field.type, seen)


def _children(info: inspect.Type) -> list[inspect.Type]:
    match info:
        case inspect.UnionType():
            return list(info.types)
        case inspect.ListType() | inspect.VarTupleType():
            return [info.item_type]
        case inspect.DictType():
            return [info.value_type]
        case _:
            return []


def _section(cls: type) -> str:
    body = _members(cls) if issubclass(cls, enum.Enum) else _fields(cls)
    return f"## {cls.__name__}\n\n{_doc(cls)}\n\n{body}".replace("\n\n\n\n", "\n\n")


def _members(cls: type[enum.Enum]) -> str:
    rows = [(f"`{member.value}`", one_line(doc_of(cls, member.name))) for member in cls]
    return table(["word", "meaning"], rows)


def _fields(cls: type, leave_out: set[str] | frozenset[str] = frozenset()) -> str:
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType)
    rows = [
        (f"`{field.encode_name}`", _word(field.type), _need(field), one_line(doc_of(cls, name)))
        for field in info.fields
        if (name := field.name) not in leave_out
    ]
    if info.tag_field and not leave_out:
        tag = "the event's type" if cls is Event else f"`{info.tag}`"
        rows.insert(0, (f"`{info.tag_field}`", tag, "yes", ""))
    return table(["field", "type", "required", "meaning"], rows)


def _need(field: inspect.Field) -> str:
    if field.required:
        return "yes"
    default = field.default
    if default is msgspec.UNSET or default is msgspec.NODEFAULT or default is None:
        return "no"
    return f"default `{msgspec.json.encode(default).decode()}`"


def _word(info: inspect.Type) -> str:
    match info:
        case inspect.StructType() | inspect.EnumType():
            return f"[{info.cls.__name__}](#{info.cls.__name__.lower()})"
        case inspect.LiteralType():
            # msgspec keeps the words in a set, whose order is not stable.
            return " or ".join(f"`{word}`" for word in sorted(map(str, info.values)))
        case inspect.ListType() | inspect.VarTupleType():
            return f"list of {_word(info.item_type)}"
        case inspect.DictType():
            return f"object of {_word(info.value_type)}"
        case inspect.UnionType():
            words = [_word(one) for one in info.types]
            return " or ".join(words)
        case _:
            return _WORDS[type(info)]


def _doc(cls: type[Any]) -> str:
    return one_line(cls.__doc__ or "")
