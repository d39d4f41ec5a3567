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


@requirement("sdk:spm-surface")
def test_methods_hooks_and_words() -> None:
    for name in SURFACE["methods"]["coroutines"]:
        assert inspect.iscoroutinefunction(getattr(spm.AgentSecurity, snake(name))), name
    for name in SURFACE["methods"]["functions"]:
        method = getattr(spm.AgentSecurity, snake(name))
        assert (callable(method) and not inspect.iscoroutinefunction(inspect.unwrap(method))) or (
            name == "check_tool_call_sync"
        ), name
    for name, words in SURFACE["words"].items():
        assert list(get_args(getattr(types, name))) == words
    for name, names in SURFACE["factories"].items():
        assert list(inspect.signature(getattr(spm, name)).parameters) == names
    told = hooks.SecurityPlugin.__doc__ or ""
    assert all(f"`{snake(hook)}`" in told for hook in SURFACE["plugins"]["hooks"])


def test_names_are_loaded_when_they_are_used() -> None:
    loaded = {name for name in loaded_by("import subluminal.spm") if name.startswith("subl")}
    assert loaded == {"subluminal", "subluminal.spm"}
    assert not loaded_by("from subluminal.spm import Decision") & HEAVY
    for name in spm.__all__:
        assert getattr(spm, name) is not None
    with pytest.raises(AttributeError, match="nothing_such"):
        spm.nothing_such  # noqa: B018
