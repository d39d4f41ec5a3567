"""The seed's API surface, name by name, against the code."""

import dataclasses
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.requirements import requirement
from tests.test_imports import HEAVY, loaded_by

from subluminal import spm
from subluminal.spm import hooks, types

SURFACE = tomllib.loads(Path(__file__).with_name("surface.toml").read_text("utf-8"))
EMPTY = inspect.Parameter.empty


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", lambda found: "_" + found[1].lower(), name)


def parameters(function: Any) -> dict[str, Any]:
    """Names and defaults; all must be keywords."""
    found = list(inspect.signature(function).parameters.values())
    found = [each for each in found if each.name != "self"]
    assert all(each.kind is each.KEYWORD_ONLY for each in found)
    return {each.name: each.default for each in found}


@requirement("sdk:spm-surface")
@pytest.mark.parametrize("name", SURFACE["types"])
def test_types_are_frozen_and_have_the_fields_of_the_seed(name: str) -> None:
    kind, told = getattr(spm, name), SURFACE["types"][name]
    fields = {field.name: field.default for field in dataclasses.fields(kind)}
    assert list(fields) == [snake(each) for each in (*told["required"], *told["optional"])]
    for each in told["required"]:
        assert fields[each] is dataclasses.MISSING, each
    for each in told["optional"]:
        assert fields[snake(each)] is None, each
    assert kind.__dataclass_params__.frozen


@requirement("sdk:spm-surface")
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("CheckToolCallParams", spm.AgentSecurity.check_tool_call),
        ("CheckToolCallParams", spm.AgentSecurity.check_tool_call_sync),
        ("AgentSecurityConfig", spm.AgentSecurity),
    ],
)
def test_parameters_and_their_defaults(name: str, function: Any) -> None:
    told, found = SURFACE[name], parameters(function)
    defaults = {snake(key): value for key, value in told["defaults"].items()}
    for each in told["required"]:
        assert found.pop(snake(each)) is EMPTY, each
    for each in map(snake, told["optional"]):
        default = found.pop(each)
        default = list(default) if isinstance(default, tuple) else default
        assert default == defaults.get(each), each
    assert found == dict.fromkeys(told["ours"])


def written(function: Any) -> list[str]:
    """The parameters of a function, as the table writes them."""
    found: list[str] = []
    for each in inspect.signature(function).parameters.values():
        if each.name == "self":
            continue
        if each.kind is each.KEYWORD_ONLY and "*" not in found:
            found.append("*")
        rest = "**" if each.kind is each.VAR_KEYWORD else ""
        default = "" if each.default is EMPTY else f"={each.default!r}"
        found.append(f"{rest}{each.name}{default}")
    return found


@requirement("sdk:spm-surface")
@pytest.mark.parametrize("kind", ["coroutines", "functions"])
def test_methods(kind: str) -> None:
    for name, told in SURFACE["methods"][kind].items():
        method = getattr(spm.AgentSecurity, snake(name))
        assert inspect.iscoroutinefunction(method) == (kind == "coroutines"), name
        if isinstance(told, list):
            assert written(method) == told, name


@requirement("sdk:spm-surface")
def test_functions_words_and_names() -> None:
    for name, told in SURFACE["functions"].items():
        owner, _, method = name.partition(".")
        function = getattr(spm, owner)
        assert written(getattr(function, method) if method else function) == told, name
    for name, words in SURFACE["words"].items():
        assert list(get_args(getattr(types, name))) == words
    told_of = hooks.SecurityPlugin.__doc__ or ""
    assert all(f"`{snake(hook)}`" in told_of for hook in SURFACE["plugins"]["hooks"])
    listed = {name.partition(".")[0] for name in SURFACE["functions"]}
    assert {*SURFACE["types"], *listed, *SURFACE["names"]["others"]} == set(spm.__all__)


@requirement("sdk:spm-surface")
def test_a_registry_is_read_only() -> None:
    public = {name for name in vars(spm.AgentRegistry) if not name.startswith("_")}
    told = {name.partition(".")[2] for name in SURFACE["functions"] if name.startswith("AgentReg")}
    assert public == told - {""}


@requirement("sdk:spm-surface")
def test_the_guide_maps_every_name_of_the_seed() -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/from-agent-security.md").read_text("utf-8")
    methods = [*SURFACE["methods"]["coroutines"], *SURFACE["methods"]["functions"]]
    options = [
        *SURFACE["AgentSecurityConfig"]["optional"],
        *SURFACE["CheckToolCallParams"]["optional"],
    ]
    for name in (*methods, *options, *SURFACE["types"], *SURFACE["functions"]):
        assert re.search(rf"\b{re.escape(name.rpartition('.')[2])}\b", guide), name


def test_names_are_loaded_when_they_are_used() -> None:
    loaded = {name for name in loaded_by("import subluminal.spm") if name.startswith("subl")}
    assert loaded == {"subluminal", "subluminal.spm"}
    assert not loaded_by("from subluminal.spm import Decision") & HEAVY
    for name in spm.__all__:
        assert getattr(spm, name) is not None
    with pytest.raises(AttributeError, match="nothing_such"):
        spm.nothing_such  # noqa: B018
