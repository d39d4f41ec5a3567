"""What a real client shows its model of a refusal, and that a model can act on it (visible-hints).

`tests/cases/hints` has the exact texts; `SHOWN=write` writes them again.
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e.clients import Programs
from tests.e2e.desk import Desk, of_type
from tests.e2e.dialects import ToolCall
from tests.e2e.fake_model import FakeModel, Thought
from tests.e2e.kinds import Kind

Model = Callable[..., FakeModel]
CASES = Path(__file__).parents[1] / "cases" / "hints"
SUGGESTED = re.compile(r"Suggested arguments: (?=\{)")


@pytest.fixture
def ready(kind: Kind, desk: Desk, fs: list[str]) -> Callable[[FakeModel], None]:
    """`ready(model)` prepares a client whose servers have the policy of the cases."""

    def prepare(fake: FakeModel) -> None:
        kind.write_config(desk, fake, {"fs": fs})
        desk.policy((CASES / "policy.yaml").read_text())
        desk.sub("import", kind.name, "--yes", "--no-hooks")
        # Compile the policy first. A shim waits five seconds for that, which is not always enough on
        # a busy machine; it would then refuse the first call.
        desk.sub("run", "--", "true")

    return prepare


def take_the_suggestion(results: list[str]) -> ToolCall:
    """Calls the tool again with the arguments that the text suggests, as a model would."""
    found = SUGGESTED.search(results[-1])
    assert found, results[-1]
    args, _ = json.JSONDecoder().raw_decode(results[-1], found.end())
    return ToolCall("fs", "read_text_file", args)


def without_names(text: str, desk: Desk) -> str:
    """Removes what differs from run to run from a text."""
    text = text.replace(str(desk.project), "/project")
    text = re.sub(r'"run_id":"[^"]+"', '"run_id":"RUN"', text)
    text = re.sub(r'"call_id":"[^"]+"', '"call_id":"CALL"', text)
    text = re.sub(r"approval [0-9a-f]{12}", "approval ID", text)
    text = re.sub(r"Wall time: [0-9.]+ seconds", "Wall time: N seconds", text)
    return re.sub(r"[0-9a-f]{64}", "HASH", text)


def test_the_model_is_shown_every_kind_of_hint(
    kind: Kind, desk: Desk, programs: Programs, model: Model, ready: Callable[[FakeModel], None]
) -> None:
    project = json.dumps(str(desk.project))[1:-1]
    calls = json.loads((CASES / "calls.json").read_text().replace("/project", project))
    fake = model([ToolCall("fs", call["tool"], call["args"]) for call in calls])
    ready(fake)
    agent = kind.start(desk, programs, fake)
    assert agent.wait() == 0, agent.said
    results = fake.last_results()
    assert len(results) == len(calls), agent.said
    shown = "".join(
        f"== {call['shows']}\n{without_names(text, desk)}\n"
        for call, text in zip(calls, results, strict=True)
        if call["shows"]
    )
    file = CASES / f"{kind.name}.txt"
    if os.environ.get("SHOWN") == "write":
        file.write_text(shown, "utf-8")
    assert shown == file.read_text("utf-8")
    events = desk.runs()[kind.session_of(agent.out)]
    hints = [event["hint"]["hint_kind"] for event in of_type(events, "hint_issued")]
    assert hints == ["ARG_FIX", "OTHER", "BUDGET", "RATE", "SAFETY", "SAFETY"]


def test_a_model_that_reads_the_hint_follows_it_and_succeeds(
    kind: Kind, desk: Desk, programs: Programs, model: Model, ready: Callable[[FakeModel], None]
) -> None:
    path = str(desk.project / "a.txt")
    refused = ToolCall("fs", "read_text_file", {"path": path, "head": 500})
    fake = model([refused, Thought("fs", take_the_suggestion)])
    ready(fake)
    agent = kind.start(desk, programs, fake)
    assert agent.wait() == 0, agent.said
    hinted, answered = fake.last_results()
    assert "Ask for fewer lines." in hinted
    assert "hello from the file" in answered
    (hint,) = [json.loads(line) for line in desk.sub("hints", "--json").splitlines()]
    assert (hint["rule_id"], hint["outcome"]) == ("short-reads", "followed")
    assert hint["suggested_args"] == {"path": path, "head": 10}
    (recovery,) = [
        json.loads(line) for line in desk.sub("hints", "--by", "both", "--json").splitlines()
    ]
    assert (recovery["rule_id"], recovery["client"], recovery["followed"]) == (
        "short-reads",
        kind.name,
        1,
    )


def retry_if_told(call: ToolCall) -> Callable[[list[str]], ToolCall]:
    """Repeats the same call if the text says so, as a model would."""

    def think(results: list[str]) -> ToolCall:
        assert "A person has been asked" in results[-1], results[-1]
        assert "retry the same call with the same arguments once it is approved" in results[-1]
        return call

    return think


def test_an_approval_lets_the_retry_pass_once(
    kind: Kind, desk: Desk, programs: Programs, model: Model, ready: Callable[[FakeModel], None]
) -> None:
    """No call waits: it is refused, a person approves it elsewhere, and the repeated call passes."""
    folder = desk.project / "new"
    call = ToolCall("fs", "create_directory", {"path": str(folder)})
    retry = Thought("fs", retry_if_told(call))
    fake = model([call, retry, call], hold_at=1)
    ready(fake)
    agent = kind.start(desk, programs, fake)
    assert fake.held.wait(60), agent.said
    assert not folder.exists()
    (asked,) = [json.loads(line) for line in desk.sub("approvals", "--json").splitlines()]
    assert (asked["tool_name"], asked["reason_code"]) == ("create_directory", "APPROVAL_REQUIRED")
    assert asked["state"] == "pending"
    assert str(folder) in asked["args_preview"]
    desk.sub("approve", asked["approval_id"])
    fake.release()
    assert agent.wait() == 0, agent.said
    _, passed, again = fake.last_results()
    assert folder.is_dir()
    assert "Rejected by policy" not in passed
    assert "A person has been asked" in again, "one approval is one call"
    events = desk.runs()[asked["run_id"]]
    assert asked["run_id"] == kind.session_of(agent.out)
    decisions = [event["decision"] for event in of_type(events, "tool_call_decision")]
    assert [d["action"] for d in decisions] == ["REJECT_WITH_HINT", "ALLOW", "REJECT_WITH_HINT"]
    (given,) = [event["approval"] for event in of_type(events, "approval_decided")]
    assert decisions[1]["grant"] == {"grant_id": given["grant_id"], "approver": given["by"]}


def test_a_promoted_hint_holds_for_the_running_agent(
    kind: Kind, desk: Desk, programs: Programs, model: Model, ready: Callable[[FakeModel], None]
) -> None:
    """A person who finds a hint too strict adds an exception to the policy."""
    path = str(desk.project / "a.txt")
    call = ToolCall("fs", "read_text_file", {"path": path, "head": 500})

    def insist(results: list[str]) -> ToolCall | None:
        return None if "hello from the file" in results[-1] else call

    fake = model([call, *[Thought("fs", insist)] * 200], hold_at=1)
    ready(fake)
    agent = kind.start(desk, programs, fake)
    assert fake.held.wait(60), agent.said
    (hint,) = [json.loads(line) for line in desk.sub("hints", "--json").splitlines()]
    policy = desk.sub_home / "policy.yaml"
    told = desk.sub("promote", hint["hint_id"], "--to", str(policy), "--yes", "--key", "head")
    assert "+  - rule_id: short-reads-exception" in told
    assert "backtest: would have allowed 1 past call" in told
    fake.release()
    assert agent.wait() == 0, agent.said
    first, *_, last = fake.last_results()
    assert "at most ten lines" in first
    assert "hello from the file" in last
