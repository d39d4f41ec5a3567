"""Agents in the real frameworks, with a model that reads only what it is shown."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.records import calls_of, lines_of
from tests.integrations.conftest import AGENTS, Run
from tests.requirements import requirement

SEAMS = ["langchain", "openai_agents", "anthropic", "pydantic_ai", "mcp"]
DECORATED = ["smolagents", "llama_index"]
WITH_IDS = {"langchain", "openai_agents", "pydantic_ai"}
WAYS = [
    *((name, how) for name in SEAMS[:4] for how in ("invoke", "async", "stream")),
    *((name, "invoke") for name in ("mcp", *DECORATED)),
]
OVER = "Run ended by policy (rule accounts-stay): the budget of 0 calls of this tool is spent."


def ask(run: Run, framework: str, task: str, how: str = "invoke") -> str:
    ran = run(str(AGENTS / f"with_{framework}.py"), task, how)
    assert ran.code == 0, ran.problem
    return ran.said


def record_of(home: Path) -> list[list[dict[str, Any]]]:
    """Returns the events of each call, in the order of the run; several processes wrote them."""
    order = ["tool_call_start", "tool_call_decision", "tool_call_end"]
    calls = calls_of([json.loads(line) for _, line in lines_of(home)])
    for call in calls:
        call.sort(key=lambda event: order.index(event["type"]))
        assert [event["type"] for event in call] == order
    return sorted(calls, key=lambda call: int(call[0]["call"]["seq"]))


def actions(calls: list[list[dict[str, Any]]]) -> list[str]:
    return [call[1]["decision"]["action"] for call in calls]


@requirement("sdk:integration-hint")
@requirement("sdk:integration-ids")
@pytest.mark.parametrize(("framework", "how"), WAYS)
def test_a_model_is_refused_follows_the_hint_and_succeeds(
    run: Run, own_home: Path, framework: str, how: str
) -> None:
    """Two calls at once: one is refused, and the model corrects it."""
    said = ask(run, framework, "refund A-7 250, refund B-2 20", how)
    assert said.splitlines()[-1] == "refunded 99 for A-7"
    calls = record_of(own_home)
    assert sorted(actions(calls)) == ["ALLOW", "ALLOW", "REJECT_WITH_HINT"]
    assert {call[-1]["status"] for call in calls if call[1]["decision"]["action"] == "ALLOW"} == {
        "OK"
    }
    assert any("refunded 20 for B-2" in str(call[-1]["preview"]) for call in calls)
    assert {call[0]["call"]["tool_name"] for call in calls} == {"refund"}
    assert {call[0]["call"]["transport"] for call in calls} == {"in_process"}
    assert {call[0]["call"]["server_name"] for call in calls} == {
        "billing" if framework == "mcp" else "python"
    }
    if framework in WITH_IDS:
        ids = {call[0]["call"]["client_call_id"] for call in calls}
        assert len(ids) == 3
        # Pydantic AI makes its own; those of the others are the model's.
        assert framework == "pydantic_ai" or all(re.fullmatch(r"call_\d_\d", each) for each in ids)


@requirement("sdk:integration-end")
@pytest.mark.parametrize(
    ("framework", "how"), [way for way in WAYS if way[0] not in ("anthropic", *DECORATED)]
)
def test_the_end_of_a_run_leaves_the_loop(
    run: Run, own_home: Path, framework: str, how: str
) -> None:
    said = ask(run, framework, "close_account A-7", how)
    assert said.startswith(f"The run is over: {OVER}")
    assert actions(record_of(own_home)) == ["TERMINATE_RUN"]


@requirement("sdk:integration-end")
@pytest.mark.parametrize("framework", ["anthropic", *DECORATED])
def test_a_framework_that_lets_nothing_out_tells_its_model(
    run: Run, own_home: Path, framework: str
) -> None:
    assert OVER in ask(run, framework, "close_account A-7")
    calls = record_of(own_home)
    assert actions(calls) == ["TERMINATE_RUN"]


@requirement("sdk:integration-failures")
@pytest.mark.parametrize("framework", ["openai_agents", "anthropic", "mcp"])
def test_a_tool_that_fails_is_on_record_as_an_error(
    run: Run, own_home: Path, framework: str
) -> None:
    """These frameworks turn the exception into a result, which the model reads."""
    ask(run, framework, "refund broken 1")
    ((*_, end),) = record_of(own_home)
    assert end["status"] == "ERROR"
    said = "the tool reported an error" if framework == "mcp" else "no such order"
    assert said in end["error"]["message"]  # behind the MCP client, a shim saw the end


@requirement("sdk:integration-handover")
def test_a_shim_behind_a_guarded_client_decides_nothing_again(run: Run, own_home: Path) -> None:
    ask(run, "mcp", "refund A-7 250, refund B-2 20")
    calls = record_of(own_home)
    assert len(calls) == 3
    for begun, decided, end in calls:
        assert begun["call"]["transport"] == "in_process"
        took_over = begun["source"]["shim_id"] != end["source"]["shim_id"]
        assert took_over == (decided["decision"]["action"] == "ALLOW")
    assert len({event["run_id"] for call in calls for event in call}) == 1


@requirement("sdk:integration-handoffs")
def test_a_refused_handoff_is_told_and_the_agent_goes_on(run: Run, own_home: Path) -> None:
    said = ask(run, "openai_agents", "transfer_to_closing")
    assert said.startswith("Rejected by policy (rule no-closing-agent)")
    assert "Tell the customer to call us." in said
    assert actions(record_of(own_home)) == ["REJECT_WITH_HINT"]


HANDED_ON = """
import asyncio, sys
from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.mcp import MCPServerStdio
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from billing import POLICY, refund
from subluminal import Guard
from subluminal.integrations.openai_agents import guarded
import with_mcp, os

set_tracing_disabled(True)
args = '{"order": "A-7", "amount": 250}'

def last(call):
    return [assistant_message(str(call.input[-1]["output"]))]

async def main():
    with Guard(agent_id="billing", policy=POLICY) as guard, guard.delegate("refunds") as theirs:
        environ = {**os.environ, **guard.environ()}
        params = {"command": sys.executable, "args": with_mcp.SHIM, "env": environ}
        model = ScriptedModel([
            [function_call("transfer_to_refunds", "{}", call_id="c1")],
            [function_call("refund", args, call_id="c2")],
            [function_call("transfer_to_billing", "{}", call_id="c3")],
            [function_call("refund", '{"order": "A-7", "amount": 7}', call_id="c4")],
            ModelStep.respond(last),
        ])
        async with MCPServerStdio(params, name="billing", client_session_timeout_seconds=60) as server:
            refunds = Agent(name="refunds", model=model, tools=[function_tool(refund)])
            billing = Agent(name="billing", model=model, mcp_servers=[server], handoffs=[])
            refunds.handoffs = [billing]
            if sys.argv[1] == "delegate":
                billing.handoffs = [guarded(refunds, theirs)]
            else:
                billing.handoffs = [refunds]
            result = await Runner.run(guarded(billing, guard), "go")
            print(result.final_output)

asyncio.run(main())
"""


@requirement("sdk:integration-handoffs")
@requirement("sdk:integration-handover")
@pytest.mark.parametrize("how", ["one guard", "delegate"])
def test_agents_behind_handoffs_and_their_mcp_servers_are_guarded(
    run: Run, own_home: Path, how: str
) -> None:
    ran = run("-c", HANDED_ON, how)
    assert "refunded 7 for A-7" in ran.said, ran.problem
    calls = record_of(own_home)
    names = [call[0]["call"]["tool_name"] for call in calls]
    assert names == ["transfer_to_refunds", "refund", "transfer_to_billing", "refund"]
    assert actions(calls) == ["ALLOW", "REJECT_WITH_HINT", "ALLOW", "ALLOW"]
    guards = [call[0]["source"]["shim_id"] for call in calls[:2]]
    assert (guards[0] != guards[1]) == (how == "delegate"), "a guarded agent keeps its guard"
    begun, _, end = calls[3]
    assert begun["call"]["server_name"] == "billing"
    assert begun["call"]["client_call_id"] == "c4"
    assert begun["source"]["shim_id"] != end["source"]["shim_id"], "the shim took it over"


@requirement("sdk:integration-missing")
@pytest.mark.parametrize("framework", SEAMS)
def test_a_framework_that_is_not_installed_is_one_clear_error(framework: str, run: Run) -> None:
    code = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("langchain", "agents", "anthropic", "pydantic_ai", "mcp"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Nothing())
import subluminal.integrations
try:
    __import__("subluminal.integrations." + sys.argv[1])
except ImportError as error:
    print(error)
"""
    said = run("-c", code, framework).said
    assert re.fullmatch(
        rf"subluminal\.integrations\.{framework} needs (\S+): pip install '\1' \(No module .*\)",
        said,
    )


@requirement("sdk:integration-lazy")
def test_the_package_imports_no_framework(run: Run) -> None:
    code = "import sys, json, subluminal.integrations; print(json.dumps(sorted(sys.modules)))"
    loaded = {name.partition(".")[0] for name in json.loads(run("-c", code).said)}
    assert not loaded & {"langchain", "agents", "anthropic", "pydantic_ai", "mcp", "asyncio"}


UNGUARDABLE = """
import sys
from billing import POLICY
from subluminal import Guard
with Guard(policy=POLICY) as guard:
    try:
        if sys.argv[1] == "anthropic":
            from subluminal.integrations.anthropic import guarded
            server_tool = {"type": "web_search_20250305", "name": "web_search"}
            assert guarded([server_tool], guard) == [server_tool]
            guarded([object()], guard)
        else:
            from agents import Agent, ShellTool, WebSearchTool
            from subluminal.integrations.openai_agents import guarded
            guarded(Agent(name="a", tools=[WebSearchTool()]), guard)
            guarded(Agent(name="a", tools=[ShellTool(executor=print)]), guard)
    except Exception as error:
        print(type(error).__name__, error)
"""


@requirement("sdk:integration-unguardable")
@pytest.mark.parametrize("framework", ["anthropic", "openai_agents"])
def test_a_tool_that_cannot_be_guarded_is_an_error(run: Run, framework: str) -> None:
    said = run("-c", UNGUARDABLE, framework).said
    assert said in (
        "TypeError a object is no tool that `guarded` can guard",
        "UserError a ShellTool cannot be guarded: make it a function tool",
    )
