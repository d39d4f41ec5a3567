"""Every tool of a real client, through hooks that `sub import` wrote: the first use of `sub hook`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.clients import Programs
from tests.e2e.desk import ORPHAN_S, SUB, Desk, is_closed, of_type, wait_until
from tests.e2e.dialects import ToolCall
from tests.e2e.fake_model import FakeModel
from tests.e2e.kinds import CLAUDE, CODEX, Kind

Model = Callable[..., FakeModel]
POLICY = """\
policy_id: own-tools
version: "1"
mode: guardrails
rules:
  - rule_id: no-touching
    kind: deny
    match: {targets: {program: {glob: [touch]}}}
    effect:
      action: REJECT_WITH_HINT
      reason_code: NO_TOUCH
      message: files are not touched here
      hint_text: Write the file with your editing tool.
  - rule_id: few
    kind: budget
    match: {}
    effect: {budget: {scope: run, limit_calls: 7, on_exceed: TERMINATE_RUN}}
"""


@pytest.fixture
def house(desk: Desk, programs: Programs) -> Desk:
    """A desk whose Codex `sub import` finds."""
    tools = desk.home / "bin"
    tools.mkdir()
    (tools / "codex").symlink_to(programs.codex)
    desk.env["PATH"] = f"{tools}:{desk.env['PATH']}"
    return desk


def files_below(folder: Path, desk: Desk) -> dict[str, bytes]:
    """Returns every configuration file below a home, without what the clients themselves write."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_relative_to(desk.sub_home)
    }


def calls_of(events: list[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    """Returns server, tool, action and status of each call of a run."""
    actions = {
        event["call"]["call_id"]: event["decision"]["action"]
        for event in of_type(events, "tool_call_decision")
    }
    ends = of_type(events, "tool_call_end")
    starts = of_type(events, "tool_call_start")
    assert len(ends) == len(starts), "each call ends once"
    statuses = {event["call"]["call_id"]: event["status"] for event in ends}
    return [
        (
            call["server_name"],
            call["tool_name"],
            actions[call["call_id"]],
            statuses[call["call_id"]],
        )
        for call in (event["call"] for event in sorted(starts, key=lambda e: e["call"]["seq"]))
    ]


def the_run(desk: Desk) -> list[dict[str, Any]]:
    """Waits for the end of the only run with calls, and returns its events."""

    def runs() -> list[list[dict[str, Any]]]:
        return [events for events in desk.runs().values() if of_type(events, "tool_call_start")]

    wait_until(lambda: all(map(is_closed, runs())), ORPHAN_S, "the end of the run")
    (events,) = runs()
    return events


def test_every_tool_is_decided_recorded_and_ended(
    any_kind: Kind, house: Desk, programs: Programs, model: Model, probe: list[str], remote: str
) -> None:
    tools, name, desk = any_kind.tools, any_kind.name, house
    forbidden = desk.project / "forbidden"
    together = [tools.shell("echo one"), tools.shell("echo two")]
    script = [
        together,
        tools.shell(f"touch {forbidden}"),
        ToolCall("near", "echo", {"text": "a"}),
        ToolCall("near", "fail", {"text": "b"}),
        ToolCall("far", "echo", {"text": "c"}),
        tools.write(desk.project / "new.txt", "text\n"),
        tools.shell("echo too much"),
        tools.shell("echo far too much"),
    ]
    fake = model(script)
    any_kind.write_config(desk, fake, {"near": probe, "far": remote})
    desk.sub("import", name, "--yes", *(["--trust"] if any_kind is CODEX else []))
    desk.policy(POLICY)
    agent = any_kind.start(desk, programs, fake)
    agent.wait()
    assert not forbidden.exists(), "the refused call did not run"
    shown = json.dumps(list(fake.requests))
    assert "Write the file with your editing tool." in shown, "the model is shown the hint"

    events = the_run(desk)
    rows = calls_of(events)
    assert [row[:2] for row in rows].count(("near", "echo")) == 1, (
        "over stdio: one call, one record"
    )
    assert [row[:2] for row in rows].count(("far", "echo")) == 1, "over HTTP"
    assert rows[2][2] == "REJECT_WITH_HINT"
    assert {row[2] for row in rows[:2] + rows[3:7]} == {"ALLOW"}
    assert rows[4][1::2] == ("fail", "ERROR")
    assert rows[-1][2] == "TERMINATE_RUN"
    assert of_type(events, "run_end")[-1]["run"]["status"] == "TERMINATED"
    assert {row[0] for row in rows} == {f"@{name}", "near", "far"}
    assert events[0]["client"] == name
    agent.assert_nothing_is_left()
    if name in ("claude", "gemini"):
        assert len(rows) == 8, "an ended run stops these clients"
    desk.sub("query", "runs")
    desk.sub("ledger", "verify")


def test_restore_gives_back_exactly_the_bytes(
    any_kind: Kind, house: Desk, model: Model, probe: list[str], remote: str
) -> None:
    """No agent runs in between: the clients rewrite their own files."""
    any_kind.write_config(house, model([]), {"near": probe, "far": remote})
    before = files_below(house.home, house)
    words = ["import", any_kind.name, "--yes", *(["--trust"] if any_kind is CODEX else [])]
    house.sub(*words)
    imported = files_below(house.home, house)
    assert {file: imported[file] for file in before} != before
    house.sub(*words)
    again = files_below(house.home, house)
    assert {file: again[file] for file in before} == {file: imported[file] for file in before}
    house.sub("restore", any_kind.name)
    after = files_below(house.home, house)
    assert {file: after[file] for file in before} == before
    assert not [file for file in after.keys() - before.keys() if "subluminal" in file]


def test_doctor_proves_that_the_hooks_run(
    any_kind: Kind, house: Desk, model: Model, probe: list[str]
) -> None:
    any_kind.write_config(house, model([]), {"near": probe})
    trust = ["--trust"] if any_kind is CODEX else []
    house.sub("import", any_kind.name, "--yes", *trust)
    house.env.pop("CI", None)
    ((check),) = [
        check
        for check in json.loads(house.sub("doctor", "--json"))["checks"]
        if check["name"] == f"hooks:{any_kind.name}"
    ]
    assert check["ok"], check


def test_a_hook_that_cannot_run_blocks_claude_if_it_shall(
    house: Desk, programs: Programs, model: Model
) -> None:
    made = house.project / "made"
    fake = model([CLAUDE.tools.shell(f"touch {made}")])
    CLAUDE.write_config(house, fake, {})
    house.sub("import", "claude", "--yes", "--hooks", "--fail-closed")
    settings = house.home / ".claude" / "settings.json"
    gone = house.home / "gone" / "sub"
    text = settings.read_text()
    assert str(SUB) in text
    settings.write_text(text.replace(str(SUB), str(gone)))
    assert CLAUDE.start(house, programs, fake).wait() == 0
    assert not made.exists()


def test_codex_skips_a_hook_that_it_does_not_trust(
    house: Desk, programs: Programs, model: Model
) -> None:
    made = house.project / "made"
    fake = model([CODEX.tools.shell(f"touch {made}")])
    CODEX.write_config(house, fake, {})
    house.policy(POLICY)
    house.sub("import", "codex", "--yes", "--hooks")
    assert CODEX.start(house, programs, fake).wait() == 0
    assert made.exists(), "it says nothing, and runs the call"
