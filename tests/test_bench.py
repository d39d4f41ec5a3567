"""The frame of the benchmarks: what passes, what fails, and what machines read."""

import json
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from bench.__main__ import main, names
from bench.harness import Result, interleaved


@pytest.mark.parametrize(
    ("ratio", "at_least", "ok"),
    [(4.0, True, True), (3.9, True, False), (4.0, False, True), (4.1, False, False)],
)
def test_a_result_knows_whether_it_meets_its_bar(ratio: float, at_least: bool, ok: bool) -> None:
    result = Result("x", ratio, 4.0, at_least)
    assert result.ok is ok
    assert str(result).startswith("ok " if ok else "FAIL ")
    assert json.loads(result.as_json())["ok"] is ok


def test_tasks_take_turns() -> None:
    turns: list[str] = []
    interleaved([lambda: turns.append("a"), lambda: turns.append("b")], rounds=2, number=2)
    assert "".join(turns) == "ab" + "aabb" * 2


def test_a_missed_bar_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = ModuleType("bench.stub")

    def measure() -> Iterator[Result]:
        yield Result("good", 1.0, 2.0, False)
        yield Result("bad", 3.0, 2.0, False)

    module.measure = measure  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "bench.stub", module)
    assert main(["stub"]) == 1
    said = capsys.readouterr()
    assert [json.loads(line)["name"] for line in said.out.splitlines()] == ["good", "bad"]
    assert "FAIL bad" in said.err


def test_every_benchmark_can_be_found() -> None:
    assert {"args_hash", "start_up"} <= set(names())
