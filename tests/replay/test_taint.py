"""Random runs: the level is the lowest of what was forwarded before, and replay agrees (issue 18).

The oracle below knows nothing of counters, cells or states: it walks a list of plain rules.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.bundles import plain, rule
from tests.replay.stage import Stage
from tests.requirements import requirement

from subluminal.contracts.bundle import Bundle
from subluminal.contracts.vocabulary import TAINT_RANK, Layer, Taint
from subluminal.operator.tainting import set_level
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.replay.comparing import Change
from subluminal.policy.snapshot import Snapshot

SERVERS, TOOLS, LEVELS = ("a", "b"), ("read", "send", "both"), [each.value for each in Taint]

names = st.fixed_dictionaries(
    {},
    optional={
        "server_name": st.sampled_from(SERVERS).map(lambda name: {"glob": [name]}),
        "tool_name": st.sampled_from(TOOLS).map(lambda name: {"glob": [name]}),
    },
)
below = st.fixed_dictionaries(
    {}, optional={"taint": st.sampled_from(["TRUSTED", "SYSTEM"]).map(lambda at: {"below": at})}
)
matches = st.builds(lambda one, other: {**one, **other}, names, below)
lowering = st.builds(lambda match, level: ("taint", match, level), matches, st.sampled_from(LEVELS))
refusing = matches.map(lambda match: ("deny", match, ""))
policies = st.tuples(
    st.lists(st.one_of(lowering, lowering, refusing), max_size=5),
    st.sampled_from([None, None, *LEVELS]),
    st.sampled_from(["guardrails", "guardrails", "observe"]),
    st.sampled_from(["ALLOW", "BLOCK"]),
)
steps = st.one_of(
    st.tuples(st.just("call"), st.sampled_from(SERVERS), st.sampled_from(TOOLS)),
    st.tuples(st.just("call"), st.sampled_from(SERVERS), st.sampled_from(TOOLS)),
    st.tuples(st.just("call"), st.sampled_from(SERVERS), st.sampled_from(TOOLS)),
    st.tuples(st.just("locked"), st.sampled_from(SERVERS), st.sampled_from(TOOLS)),
    st.tuples(st.just("resource"), st.sampled_from(SERVERS), st.just("")),
    st.tuples(st.just("program"), st.sampled_from(LEVELS), st.just("")),
    st.tuples(st.just("person"), st.sampled_from(LEVELS), st.just("")),
    st.tuples(st.just("shim"), st.just(""), st.just("")),
)
Written = tuple[list[tuple[str, dict[str, Any], str]], str | None, str, str]


class Holder:
    """Another process, which holds the lock of a run while it is told to."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.state.worker", "hold_each", "", ""]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1)

    @contextmanager
    def holds(self, state_dir: str) -> Iterator[None]:
        self._say(f"{state_dir}\trun", "held")
        yield
        self._say("", "free")

    def _say(self, line: str, answer: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        assert self._process.stdout.readline() == answer + "\n"

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def holder() -> Iterator[Holder]:
    made = Holder()
    yield made
    made.end()


class Oracle:
    """The level of a run, found by walking the rules as they are written."""

    def __init__(self, written: list[Written]) -> None:
        self._written = written
        self.level = max(
            [Taint(start) for _, start, *_ in written if start],
            key=TAINT_RANK.__getitem__,
            default=Taint.SYSTEM,
        )

    def call(self, server: str, tool: str) -> bool:
        """Makes a call; returns whether it is forwarded."""
        before = self.level
        passes = all(
            mode == "observe" or not self._first(rules, "deny", server, tool, before)
            for rules, _, mode, _ in self._written
        )
        if passes:
            for rules, *_ in self._written:
                found = self._first(rules, "taint", server, tool, before)
                if found:
                    self.lower(Taint(found[0][2]))
        return passes

    def unjudged(self, server: str, tool: str) -> bool:
        """Makes a call that no rule can judge; returns whether it is forwarded."""
        passes = all(mode == "observe" or answer == "ALLOW" for *_, mode, answer in self._written)
        if passes:
            for rules, *_ in self._written:
                for level in Taint:  # any level: rules that ask for one may match or not
                    for found in self._all(rules, "taint", server, tool, level):
                        self.lower(Taint(found[2]))
        return passes

    def resource(self, server: str) -> None:
        for rules, *_ in self._written:
            for kind, match, level in rules:
                is_about = match.get("server_name", {"glob": [server]})["glob"] == [server]
                if kind == "taint" and is_about and not match.keys() - {"server_name"}:
                    self.lower(Taint(level))
                    break

    def lower(self, level: Taint) -> Taint:
        self.level = max(self.level, level, key=TAINT_RANK.__getitem__)
        return self.level

    def _first(self, *asked: Any) -> list[Any]:
        return self._all(*asked)[:1]

    @staticmethod
    def _all(rules: list[Any], kind: str, server: str, tool: str, level: Taint) -> list[Any]:
        return [
            each
            for each in rules
            if each[0] == kind
            and each[1].get("server_name", {"glob": [server]})["glob"] == [server]
            and each[1].get("tool_name", {"glob": [tool]})["glob"] == [tool]
            and (
                "taint" not in each[1]
                or TAINT_RANK[level] > TAINT_RANK[Taint(each[1]["taint"]["below"])]
            )
        ]


def compiled(number: int, written: Written) -> Snapshot:
    rules, start, mode, on_error = written
    made = [
        rule(kind, f"r{place}", match=match, **({"lower_to": level} if kind == "taint" else {}))
        for place, (kind, match, level) in enumerate(rules)
    ]
    defaults = {"decision_on_error": on_error, **({"taint": start} if start else {})}
    bundle = plain(*made, policy_id=f"p{number}", mode=mode, defaults=defaults)
    return compile_bundle(msgspec.convert(bundle, Bundle))


@requirement("taint:replay")
@settings(max_examples=60, deadline=None)
@given(st.lists(policies, min_size=1, max_size=3), st.lists(steps, max_size=25), st.randoms())
def test_the_level_is_the_lowest_of_what_was_forwarded(
    holder: Holder, written: list[Written], made: list[tuple[str, str, str]], random: Any
) -> None:
    files = [layer for layer in Layer if layer is not Layer.PACK]
    layers = list(zip(files, (compiled(*each) for each in enumerate(written)), strict=False))
    with TemporaryDirectory() as home, pytest.MonkeyPatch.context() as monkeypatch:
        stage = Stage(Path(home), monkeypatch)
        oracle = Oracle(written)
        shims = [stage.shim(layers, wait_ms=1)]
        asks = shims[0].engine.asks_taint
        wanted = []
        for step, one, two in made:
            shim = random.choice(shims)
            stage.clock.go(1)
            if step == "call":
                wanted.append(oracle.level)
                ruling = stage.begin(shim, one, two, {})
                assert ruling.is_allowed == oracle.call(one, two)
                assert ruling.level is None or ruling.level.before is wanted[-1]
                assert (ruling.level is None) == (not asks)
                if ruling.is_allowed:
                    stage.end(shim, ruling)
            elif step == "locked":
                wanted.append(oracle.level)
                with holder.holds(stage.home.places.state):
                    ruling = stage.begin(shim, one, two, {})
                    assert ruling.is_allowed == oracle.unjudged(one, two)
                    assert ruling.level is None or ruling.level.before is wanted[-1]
                    if asks:
                        assert shims[0].run.state.taint_state().level is oracle.level
            elif step == "program":
                assert shim.levels.lower(Taint(one), "a program") is oracle.lower(Taint(one))
            elif step == "resource":
                assert shim.read_from(one, "resources/read") == ""
                oracle.resource(one)
            elif step == "person":
                set_level(stage.home.places, "run", Taint(one))
                oracle.level = Taint(one)
            elif len(shims) < 4:
                shims.append(stage.shim(layers, wait_ms=1))
            if asks:
                assert shims[0].run.state.taint_state().level is oracle.level
        for layer, snapshot in layers:
            rows, _ = stage.replay(snapshot, layer=layer)
            assert len(rows) == len(wanted)
            assert [each.plain() for each in rows if each.change is not Change.SAME] == []
        stage.close()


@requirement("taint:replay")
def test_a_call_without_a_number_is_replayed_after_those_that_came_before_it(
    holder: Holder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another shim made a call and a person raised the level, before the lock was busy."""
    written = ([("taint", {}, "UNTRUSTED"), ("deny", {"taint": {"below": "TRUSTED"}}, "")], None)
    layers = [(Layer.REPOSITORY, compiled(0, (*written, "guardrails", "ALLOW")))]
    stage = Stage(tmp_path, monkeypatch)
    late, early = (stage.shim(layers, wait_ms=1) for _ in range(2))
    found = [stage.begin(early, "a", "read", {})]
    stage.clock.go(1)
    set_level(stage.home.places, "run", Taint.SYSTEM)
    stage.clock.go(1)
    with holder.holds(stage.home.places.state):
        found.append(stage.begin(late, "a", "read", {}))
    stage.clock.go(1)
    found.append(stage.begin(early, "a", "read", {}))
    assert [each.is_allowed for each in found] == [True, True, False]
    rows, _ = stage.replay(layers[0][1], layer=Layer.REPOSITORY)
    assert [each.call.seq for each in rows] == [1, 0, 2]
    assert [each.change for each in rows] == [Change.SAME] * 3
    stage.close()
