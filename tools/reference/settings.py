"""Generates the pages of `config.toml`, of the environment variables and of the exit codes."""

import msgspec
from msgspec import inspect
from tools.field_docs import doc_of, one_line
from tools.reference.markdown import page, table

from subluminal.config.env import VARIABLES
from subluminal.config.settings import Settings
from subluminal.errors import ExitCode


def pages() -> dict[str, str]:
    """Returns the three pages."""
    return {
        "docs/reference/settings.md": _settings(),
        "docs/reference/environment.md": _environment(),
        "docs/reference/exit-codes.md": _exit_codes(),
    }


def _settings() -> str:
    info = inspect.type_info(Settings)
    assert isinstance(info, inspect.StructType)
    parts = [_section(field.name, field.type) for field in info.fields]
    return page(
        "Settings",
        "`$SUB_HOME/config.toml`. Every section and key may be left out. Unknown keys are errors, "
        "with line numbers and a suggestion. Shims take a change over within a second; ledgerd "
        "reads its own section when it starts.",
        *parts,
    )


def _section(name: str, type_: inspect.Type) -> str:
    struct = type_.value_type if isinstance(type_, inspect.DictType) else type_
    if not isinstance(struct, inspect.StructType):
        doc = one_line(doc_of(Settings, name))
        return f"## `{name}`\n\n{doc}".rstrip()
    title = f"[{name}.NAME]" if isinstance(type_, inspect.DictType) else f"[{name}]"
    rows = [
        (f"`{field.name}`", _default(field), one_line(doc_of(struct.cls, field.name)))
        for field in struct.fields
    ]
    doc = one_line(struct.cls.__doc__ or "")
    return f"## `{title}`\n\n{doc}\n\n" + table(["key", "default", "meaning"], rows)


def _default(field: inspect.Field) -> str:
    if field.required:
        return "required"
    if field.default_factory is not msgspec.NODEFAULT:
        return f"`{msgspec.json.encode(field.default_factory()).decode()}`"
    return "none" if field.default is None else f"`{msgspec.json.encode(field.default).decode()}`"


def _environment() -> str:
    rows = [(f"`{variable.name}`", variable.doc) for variable in VARIABLES]
    return page(
        "Environment variables",
        "Everything that Subluminal reads from the environment or stamps on an agent.",
        table(["variable", "meaning"], rows),
    )


def _exit_codes() -> str:
    rows = [(f"`{code.value}`", one_line(doc_of(ExitCode, code.name))) for code in ExitCode]
    return page(
        "Exit codes",
        "`sub run` otherwise returns the agent's own exit code (128+N for a signal).",
        table(["code", "meaning"], rows),
    )
