"""Arguments bound to their names and in a JSON form, and results as the record shows them."""

import datetime
import enum
import inspect
import json
import re
import subprocess
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.policies import bundle, deny, rule
from tests.requirements import requirement
from tests.sdk.conftest import Office

from subluminal import Blocked
from subluminal.adapters.in_process.guarding.arguments import Binder, arguments_of
from subluminal.adapters.in_process.guarding.shown import shown

ROOT = Path(__file__).parents[2]
MIB = 1 << 20


def plain(a: Any, b: Any = 2) -> None: ...
def named_only(a: Any, *, b: Any, c: Any = 3) -> None: ...
def positional_only(a: Any, /, b: Any = 2) -> None: ...
def any_number(a: Any, *rest: Any, **more: Any) -> None: ...
def both(a: Any, /, b: Any = 2, **more: Any) -> None: ...
def nothing() -> None: ...


class Owner:
    def method(self, a: Any, b: Any = 2) -> None: ...


METHOD: Callable[..., Any] = Owner.method
FUNCTIONS: list[Callable[..., Any]] = [
    *(plain, named_only, positional_only, any_number, both, nothing, METHOD)
]


@requirement("sdk:binding")
@given(
    st.sampled_from(FUNCTIONS),
    st.lists(st.integers(), max_size=4),
    st.dictionaries(st.sampled_from(["a", "b", "c", "self"]), st.integers(), max_size=3),
)
def test_arguments_are_bound_as_python_binds_them(
    function: Callable[..., Any], positional: list[int], named: dict[str, int]
) -> None:
    try:
        bound = inspect.signature(function).bind(*positional, **named)
    except TypeError as error:
        with pytest.raises(TypeError, match=re.escape(str(error))):
            Binder(function).bind(tuple(positional), named)
        return
    bound.apply_defaults()
    more = bound.arguments.pop("more", {})
    expected = {**bound.arguments, **more}
    if more.keys() & bound.arguments:
        expected = {**bound.arguments, "more": more}
    if function is METHOD:
        del expected["self"]
    assert Binder(function).bind(tuple(positional), named) == expected


class Colour(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 2


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Order:
    number: int
    items: list[str] = field(default_factory=list)


class Price(msgspec.Struct):
    cents: int


class Text(str):
    """A text that says something else of itself."""

    def __str__(self) -> str:
        return "harmless"


class Count(int):
    pass


@requirement("sdk:json-form")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Order(1, ["a"]), {"number": 1, "items": ["a"]}),
        (Price(5), {"cents": 5}),
        (Colour.RED, "red"),
        (Size.BIG, 2),
        (Point(1, 2), [1, 2]),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC), "2026-01-02T03:04:05Z"),
        (PurePosixPath("/a/b"), "/a/b"),
        (b"ab", "YWI="),
        (bytearray(b"ab"), "YWI="),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.20"), "1.20"),
        ({3, 1, 2}, [1, 2, 3]),
        ((1, None), [1, None]),
        ({1: "a"}, {"1": "a"}),
        (OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
        (Text("rm -rf /"), "rm -rf /"),
        (Count(7), 7),
        ([{"deep": [Order(1)]}], [{"deep": [{"number": 1, "items": []}]}]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_usual_types_have_a_json_form(value: Any, expected: Any) -> None:
    found = arguments_of({"v": value}, MIB)
    assert found.text is not None
    assert json.loads(found.text) == {"v": expected}
    assert found.args_hash == sha256(found.text).hexdigest()


@requirement("sdk:json-form")
def test_models_of_pydantic_and_attrs_have_one_too(installed: Path) -> None:
    """With the real libraries, of another environment; ours has neither."""
    code = """
import attrs, json, pydantic, datetime
from subluminal.adapters.in_process.guarding.arguments import arguments_of
from subluminal.adapters.in_process.guarding.shown import shown
class Item(pydantic.BaseModel):
    when: datetime.date
    key: str = pydantic.Field("hidden", exclude=True)
@attrs.define
class Box:
    items: list[Item]
box = Box([Item(when=datetime.date(2026, 1, 2))])
print(arguments_of({"v": box}, 1000).text.decode(), shown(box, 1000).text.decode())
print(shown(Item.model_construct(when="x" * 10**8), 50).text.decode())
class Keys(pydantic.RootModel[list[pydantic.SecretStr]]): pass
keys = Keys(["hunter2"])
print(arguments_of({"v": keys}, 1000).text.decode(), shown(keys, 1000).text.decode())
"""
    paths = [ROOT / "src", Path(msgspec.__file__).parents[1]]
    ran = subprocess.run(
        [
            installed / "mcp1/bin/python",
            "-c",
            f"import sys; sys.path += {[*map(str, paths)]}" + code,
        ],
        capture_output=True,
        text=True,
    )
    assert ran.stderr == ""
    form = '{"items":[{"when":"2026-01-02"}]}'
    assert ran.stdout.splitlines() == [
        f'{{"v":{form}}} {form}',
        '{"when":"' + "x" * 48 + '"}',
        '{"v":["**********"]} ["a value of type SecretStr"]',
    ]


class Odd:
    pass


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@requirement("sdk:no-json-form")
@pytest.mark.parametrize(
    "value",
    [Odd(), float("nan"), object, 1j, "\ud800", CYCLE, iter([1]), {1: "rm", "1": "ls"}],
    ids=["object", "nan", "class", "complex", "surrogate", "cycle", "iterator", "equal keys"],
)
def test_a_value_without_a_json_form_is_not_inspected(value: Any, office: Office) -> None:
    rows = rule("rows", "deny", _block("ROWS"), args={"has_keys": ["zzz"]})
    guard = office.guard(policy=bundle(rows))
    guard.check("t", {"other": 1})
    for _ in range(2):
        assert guard.check("t", {"v": value}).reason_code == "EVALUATION_ERROR"
    starts = [call[0]["call"] for call in office.calls()][1:]
    assert len({start["args_hash"] for start in starts}) == 2
    assert [start["preview"]["args_preview"] for start in starts] == ["[TRUNCATED]"] * 2


@requirement("sdk:no-json-form")
def test_code_of_a_value_that_fails_is_no_way_around_a_rule(office: Office) -> None:
    class Sly:
        def model_dump(self, mode: str) -> Any:
            raise RuntimeError("no")

    guard = office.guard(rule("rows", "deny", _block("ROWS"), args={"has_keys": ["zzz"]}))

    @guard.tool
    def run(value: Any) -> None:
        raise AssertionError("it ran")

    with pytest.raises(Blocked):
        run(Sly())


def _block(code: str) -> dict[str, Any]:
    return {"action": "BLOCK", "reason_code": code, "message": "no"}


def test_arguments_that_are_too_large_keep_their_hash(office: Office) -> None:
    large = {"v": "x" * 5_000_000}
    first, again = (arguments_of(large, MIB) for _ in range(2))
    assert first.args is None
    assert first == again
    assert first.size > 5_000_000


def test_args_says_what_rules_and_records_see(office: Office) -> None:
    guard = office.guard(deny("rm"))

    @guard.tool(args=lambda args: {"table": args["table"]})
    def read(connection: Any, table: str) -> str:
        return f"{connection.__class__.__name__} {table}"

    assert read(Odd(), "users") == "Odd users"
    (call,) = office.calls()
    assert call[0]["call"]["preview"]["args_preview"] == '{"table":"users"}'


@requirement("sdk:bounded-results")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("naïve", '"naïve"'),
        ([1, {"a": (2.5, None)}], '[1,{"a":[2.5,null]}]'),
        (Order(1, ["a"]), '{"number":1,"items":["a"]}'),
        (Odd(), '"a value of type Odd"'),
        ({"rows": [1, Odd(), Path("/a")]}, '{"rows":[1,"a value of type Odd","/a"]}'),
        (float("inf"), "null"),
        (CYCLE, None),
        ({1, 2}, "[1,2]"),
        (Path("/a"), '"/a"'),
    ],
    ids=lambda value: type(value).__name__,
)
def test_results_as_the_record_shows_them(value: Any, text: str | None) -> None:
    found = shown(value, 200)
    assert len(found.text) < 1000
    if text is not None:
        assert found.text.decode() == text


@requirement("sdk:bounded-results")
@pytest.mark.parametrize(
    "value",
    [
        "x" * (64 * MIB),
        b"x" * (64 * MIB),
        ["x" * (64 * MIB)],
        [[["y"] * 1000] * 1000] * 100,
        {str(n): "z" * 1000 for n in range(100_000)},
        Order(1, ["q" * (64 * MIB)]),
    ],
    ids=["text", "bytes", "list", "nested", "dict", "dataclass"],
)
def test_no_more_of_a_result_is_encoded_than_a_preview_needs(value: Any) -> None:
    found = shown(value, 10_000)
    assert 9_000 < len(found.text) < 30_000
    if isinstance(value, str | bytes):
        assert found.size > len(value)


@requirement("sdk:bounded-results")
def test_a_secret_in_a_result_is_masked(office: Office) -> None:
    secret = "ghp_" + "aB3d" * 9
    guard = office.guard()
    with guard.call("t", {}) as call:
        call.result = {"token": secret, "rows": [1] * 100_000}
    ((status, text),) = office.ends()
    assert status == "OK"
    assert secret not in text
    assert text.startswith('{"token":')
