"""What only one framework has: handoffs, shims behind MCP clients, tools that stop and go on."""

from pathlib import Path

import pytest
from tests.integrations.conftest import Agent, actions, of_framework, record_of, statuses
from tests.integrations.test_frameworks import OVER
from tests.requirements import requirement

langchain = pytest.mark.xdist_group("framework-langchain")
openai_agents = pytest.mark.xdist_group("framework-openai_agents")
pydantic_ai = pytest.mark.xdist_group("framework-pydantic_ai")
mcp = pytest.mark.xdist_group("framework-mcp")


@langchain
@requirement("sdk:integration-end")
@pytest.mark.parametrize("how", ["invoke", "async"])
def test_a_graph_gives_the_middleware_to_its_tool_node(
    scenario: Agent, own_home: Path, how: str
) -> None:
    first, second, over = scenario("langchain", "tool_node", how).splitlines()
    assert first == "success refunded 1 for A-7"
    assert second.startswith("error Rejected by policy (rule small-refunds)")
    assert over.startswith(OVER)
    assert sorted(actions(record_of(own_home))) == ["ALLOW", "REJECT_WITH_HINT", "TERMINATE_RUN"]


@langchain
@requirement("sdk:integration-pauses")
@pytest.mark.parametrize("how", ["invoke", "async"])
def test_a_tool_that_asks_a_person_is_called_again(
    scenario: Agent, own_home: Path, how: str
) -> None:
    said = scenario("langchain", "interrupted", how)
    assert said.splitlines() == ["sure?", "a person said yes"]
    assert statuses(record_of(own_home)) == ["CANCELLED", "OK"]


@pydantic_ai
@requirement("sdk:integration-pauses")
def test_a_deferred_tool_is_called_again(scenario: Agent, own_home: Path) -> None:
    assert scenario("pydantic_ai", "deferred").splitlines() == ["close", "closed A-7"]
    assert statuses(record_of(own_home)) == ["CANCELLED", "OK"]


@pydantic_ai
@requirement("sdk:integration-failures")
def test_a_retry_that_a_tool_asks_for_is_an_error(scenario: Agent, own_home: Path) -> None:
    assert scenario("pydantic_ai", "failing") == "no such order"
    ends = [call[-1] for call in record_of(own_home)]
    assert [end["error"]["message"] for end in ends] == [
        "ToolRetryError: which order?",
        "RuntimeError: no such order",
    ]


@mcp
@requirement("sdk:integration-handover")
def test_a_shim_behind_a_guarded_client_decides_nothing_again(agent: Agent, own_home: Path) -> None:
    agent("mcp", "refund A-7 250, refund B-2 20")
    calls = record_of(own_home)
    assert len(calls) == 3
    for begun, decided, end in calls:
        assert begun["call"]["transport"] == "in_process"
        took_over = begun["source"]["shim_id"] != end["source"]["shim_id"]
        assert took_over == (decided["decision"]["action"] == "ALLOW")
    assert len({event["run_id"] for call in calls for event in call}) == 1


@requirement("sdk:integration-handover")
@pytest.mark.parametrize("line", [of_framework("mcp1"), of_framework("mcp")])
def test_a_session_of_either_line_of_the_mcp_sdk_is_guarded(
    scenario: Agent, own_home: Path, line: str
) -> None:
    refused, done, failed, over = scenario(line, "session", module="scenarios_mcp").splitlines()
    assert refused.startswith("True Rejected by policy (rule small-refunds)")
    assert done == "False refunded 99 for A-7"
    assert failed.startswith("True Error executing tool refund")
    assert over.startswith(OVER)
    calls = record_of(own_home)
    assert actions(calls) == ["REJECT_WITH_HINT", "ALLOW", "ALLOW", "TERMINATE_RUN"]
    assert statuses(calls) == ["ERROR", "OK", "ERROR", "ERROR"]
    ends = [(begun["source"]["shim_id"], end["source"]["shim_id"]) for begun, _, end in calls]
    assert [one != other for one, other in ends] == [False, True, True, False]
    assert [call[0]["call"].get("client_call_id") for call in calls][1] == "mine"


@openai_agents
@requirement("sdk:integration-handoffs")
def test_a_refused_handoff_is_told_and_the_agent_goes_on(agent: Agent, own_home: Path) -> None:
    said = agent("openai_agents", "transfer_to_closing")
    assert said.startswith("Rejected by policy (rule no-closing-agent)")
    assert "Tell the customer to call us." in said
    assert actions(record_of(own_home)) == ["REJECT_WITH_HINT"]


@openai_agents
@requirement("sdk:integration-handoffs")
@pytest.mark.parametrize("who", ["one guard", "delegate"])
def test_agents_behind_handoffs_and_their_mcp_servers_are_guarded(
    scenario: Agent, own_home: Path, who: str
) -> None:
    assert "refunded 7 for A-7" in scenario("openai_agents", "handed_on", who)
    calls = record_of(own_home)
    names = [call[0]["call"]["tool_name"] for call in calls]
    assert names == ["transfer_to_refunds", "refund", "transfer_to_billing", "refund"]
    assert actions(calls) == ["ALLOW", "REJECT_WITH_HINT", "ALLOW", "ALLOW"]
    guards = [call[0]["source"]["shim_id"] for call in calls[:2]]
    assert (guards[0] != guards[1]) == (who == "delegate"), "a guarded agent keeps its guard"
    begun, _, end = calls[3]
    assert begun["call"]["server_name"] == "billing"
    assert begun["call"]["client_call_id"] == "c4"
    assert begun["source"]["shim_id"] != end["source"]["shim_id"], "the shim took it over"


@requirement("sdk:integration-unguardable")
@pytest.mark.parametrize(
    ("framework", "said"),
    [
        of_framework(
            "openai_agents", "a tool of type ShellTool cannot be guarded: make it a function tool"
        ),
        of_framework("anthropic", "a tool of type object cannot be guarded"),
    ],
)
def test_a_tool_that_cannot_be_guarded_is_an_error(
    scenario: Agent, framework: str, said: str
) -> None:
    assert scenario(framework, "unguardable") == said


@openai_agents
@requirement("sdk:integration-unguardable")
def test_no_agent_behind_a_guarded_one_is_unguarded(scenario: Agent, own_home: Path) -> None:
    unguarded, refused, later = scenario("openai_agents", "inner_agents").splitlines()
    assert unguarded.startswith("the agent behind the tool ask is not guarded")
    assert refused.startswith("Rejected by policy (rule small-refunds)")
    assert later.startswith("a handoff was added to a guarded agent")
    assert actions(record_of(own_home)) == ["ALLOW", "REJECT_WITH_HINT"]


@langchain
@requirement("sdk:integration-failures")
def test_a_tool_may_return_several_messages(scenario: Agent, own_home: Path) -> None:
    assert scenario("langchain", "several") == "done"
    assert statuses(record_of(own_home)) == ["OK"]
