"""Agents in the real frameworks, with a model that reads only what it is shown."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.policies import bundle, rule
from tests.integrations.conftest import ROOT, Agent, actions, of_framework, record_of, statuses
from tests.requirements import requirement

SEAMS = ["langchain", "openai_agents", "anthropic", "pydantic_ai", "mcp"]
DECORATED = ["smolagents", "llama_index"]
PROVIDERS = {
    "langchain": "langchain",
    "openai_agents": "openai-agents",
    "anthropic": "anthropic",
    "pydantic_ai": "pydantic-ai",
    "mcp": "mcp",
}
"""What rules with `tool_provider` know a framework by."""
WITH_IDS = {"langchain", "openai_agents", "pydantic_ai"}
WAYS = {
    "langchain": ["invoke", "async", "stream", "astream"],
    "openai_agents": ["invoke", "async", "stream"],
    "anthropic": ["invoke", "async", "stream", "astream"],
    "pydantic_ai": ["invoke", "async", "stream"],
    "mcp": ["async"],
}
ONE_AT_A_TIME = {"anthropic", "smolagents"}
"""Frameworks that run the tool calls of one message one after the other."""
OVER = "Run ended by policy (rule accounts-stay): the budget of 0 calls of this tool is spent."
GUIDE = ROOT / "docs" / "guides" / "frameworks" / "README.md"
TASK = "refund A-7 250, refund B-2 20"
ANY = "scenarios_any"

each_way = pytest.mark.parametrize(
    ("framework", "how"), [of_framework(name, how) for name, ways in WAYS.items() for how in ways]
)
each_framework = pytest.mark.parametrize(
    "framework", [of_framework(name) for name in (*SEAMS, *DECORATED)]
)
lets_out = pytest.mark.parametrize(
    ("framework", "how"),
    [of_framework(name, how) for name, ways in WAYS.items() if name != "anthropic" for how in ways],
)


@requirement("sdk:integration-hint")
@each_way
def test_a_model_is_refused_follows_the_hint_and_succeeds(
    agent: Agent, own_home: Path, framework: str, how: str
) -> None:
    """Two calls at once: one is refused, and the model corrects it."""
    said = agent(framework, TASK, how)
    assert said == "refunded 99 for A-7"
    calls = record_of(own_home)
    assert sorted(actions(calls)) == ["ALLOW", "ALLOW", "REJECT_WITH_HINT"]
    assert sorted(statuses(calls)) == ["ERROR", "OK", "OK"]
    assert any("refunded 20 for B-2" in str(call[-1]["preview"]) for call in calls)
    begun = [call[0]["call"] for call in calls]
    assert {each["tool_name"] for each in begun} == {"refund"}
    assert {each["transport"] for each in begun} == {"in_process"}
    assert {each["server_name"] for each in begun} == {
        "billing" if framework == "mcp" else "python"
    }


@requirement("sdk:integration-hint")
@pytest.mark.parametrize("framework", [of_framework(name) for name in DECORATED])
def test_a_framework_without_a_seam_has_decorated_functions(
    agent: Agent, own_home: Path, framework: str
) -> None:
    assert agent(framework, TASK) == "refunded 99 for A-7"
    assert sorted(actions(record_of(own_home))) == ["ALLOW", "ALLOW", "REJECT_WITH_HINT"]


@requirement("sdk:integration-ids")
@pytest.mark.parametrize("framework", [of_framework(name) for name in sorted(WITH_IDS)])
def test_the_ids_of_a_framework_are_on_record(agent: Agent, own_home: Path, framework: str) -> None:
    agent(framework, TASK)
    ids = {call[0]["call"]["client_call_id"] for call in record_of(own_home)}
    assert len(ids) == 3
    # Pydantic AI makes its own; those of the others are the model's.
    assert framework == "pydantic_ai" or all(re.fullmatch(r"call_\d_\d", each) for each in ids)


@requirement("sdk:integration-end")
@lets_out
def test_the_end_of_a_run_leaves_the_loop(
    agent: Agent, own_home: Path, framework: str, how: str
) -> None:
    said = agent(framework, "close_account A-7", how)
    assert said.startswith(f"The run is over: {OVER}")
    assert actions(record_of(own_home)) == ["TERMINATE_RUN"]


@requirement("sdk:integration-end")
@pytest.mark.parametrize(
    ("framework", "how"),
    [
        *(of_framework("anthropic", how) for how in WAYS["anthropic"]),
        *(of_framework(name, "invoke") for name in DECORATED),
    ],
)
def test_a_framework_that_lets_nothing_out_tells_its_model(
    agent: Agent, own_home: Path, framework: str, how: str
) -> None:
    assert OVER in agent(framework, "close_account A-7", how)
    assert actions(record_of(own_home)) == ["TERMINATE_RUN"]


@requirement("sdk:integration-failures")
@pytest.mark.parametrize(
    "framework", [of_framework(name) for name in ("openai_agents", "anthropic", "mcp")]
)
def test_a_tool_that_fails_is_on_record_as_an_error(
    agent: Agent, own_home: Path, framework: str
) -> None:
    """These frameworks turn the exception into a result, which the model reads."""
    agent(framework, "refund broken 1")
    ((*_, end),) = record_of(own_home)
    assert end["status"] == "ERROR"
    said = "the tool reported an error" if framework == "mcp" else "no such order"
    assert said in end["error"]["message"]  # behind the MCP client, a shim saw the end


def refunds(kind: str, effect: dict[str, Any], **match: Any) -> dict[str, Any]:
    """Returns a policy with one rule about refunds."""
    return bundle(rule("r", kind, effect, tool_name={"glob": ["refund"]}, **match))


def limited(max_calls: int, window_ms: int) -> dict[str, Any]:
    """Returns a policy that throttles refunds."""
    limit = {
        "max_calls": max_calls,
        "window_ms": window_ms,
        "backoff_ms": window_ms,
        "scope": "run",
        "on_limit": "THROTTLE",
    }
    return refunds("rate_limit", {"rate_limit": limit})


def options_for(framework: str, **options: Any) -> dict[str, Any]:
    """Returns options of a guard for the example of a framework."""
    return {**options, "refusals": "return"} if framework in DECORATED else options


@requirement("sdk:integration-waits")
@each_framework
def test_parallel_calls_wait_for_answers_side_by_side(
    scenario: Agent, own_home: Path, framework: str
) -> None:
    """The callback answers when both calls ask: a wait of one that held up the other would fail."""
    effect = {"action": "BLOCK", "reason_code": "ASK", "message": "ask", "require": "approval"}
    how = "async" if "async" in WAYS.get(framework, ()) else "invoke"
    asked = (framework, TASK, how, refunds("deny", effect), options_for(framework))
    together = 1 if framework in ONE_AT_A_TIME else 2
    said = scenario(framework, "approved", *asked, together, module=ANY)
    assert "refunded 250 for A-7" in said
    assert "a callback of the program said no" in said
    calls = record_of(own_home)
    assert sorted(actions(calls)) == ["ALLOW", "BLOCK", *["REJECT_WITH_HINT"] * 2]
    assert sum("retry_of" in call[0]["call"] for call in calls) == 2


@requirement("sdk:integration-waits")
@each_framework
def test_a_throttled_call_waits_if_the_guard_does(
    scenario: Agent, own_home: Path, framework: str
) -> None:
    options = options_for(framework, on_throttle="wait")
    asked = (framework, TASK, "invoke", limited(1, window_ms=100), options)
    said = scenario(framework, "under", *asked, module=ANY)
    assert "refunded 250 for A-7" in said
    assert "refunded 20 for B-2" in said
    assert actions(record_of(own_home)).count("ALLOW") == 2


@requirement("sdk:integration-hint")
@each_framework
def test_throttled_calls_are_told_and_a_limit_is_exact(
    scenario: Agent, own_home: Path, framework: str
) -> None:
    task = ", ".join(f"refund A-{number} 20" for number in range(5))
    asked = (framework, task, "invoke", limited(2, window_ms=600_000), options_for(framework))
    said = scenario(framework, "under", *asked, module=ANY)
    assert said.count("Throttled by policy (rule r)") == 3
    assert sorted(actions(record_of(own_home))) == ["ALLOW"] * 2 + ["THROTTLE"] * 3


@requirement("sdk:integration-provider")
@pytest.mark.parametrize("framework", [of_framework(name) for name in PROVIDERS])
def test_rules_know_the_provider_of_a_tool(scenario: Agent, own_home: Path, framework: str) -> None:
    effect = {"action": "BLOCK", "reason_code": "NOT_HERE", "message": "not with this framework"}
    policy = refunds("deny", effect, tool_provider=[PROVIDERS[framework]])
    asked = (framework, "refund A-7 1", "invoke", policy, {})
    assert "not with this framework" in scenario(framework, "under", *asked, module=ANY)
    assert actions(record_of(own_home)) == ["BLOCK"]


@pytest.mark.xdist_group("framework-langchain")
def test_the_guide_shows_what_the_examples_say(agent: Agent, own_home: Path) -> None:
    shown = re.findall(r"bin/python \S+/with_(\w+)\.py (.*)\n(.*)\n", GUIDE.read_text("utf-8"))
    assert len(shown) == 2
    for framework, words, said in shown:
        assert agent(framework, *shlex.split(words)) == said


NOT_INSTALLED = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("langchain", "agents", "anthropic", "pydantic_ai", "mcp"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Nothing())
for name in sys.argv[1:]:
    try:
        __import__("subluminal.integrations." + name)
    except ImportError as error:
        print(error)
"""


@requirement("sdk:integration-missing")
def test_a_framework_that_is_not_installed_is_one_clear_error(
    python: Callable[..., str],
) -> None:
    lines = python(NOT_INSTALLED, *SEAMS).splitlines()
    for framework, said in zip(SEAMS, lines, strict=True):
        wanted = (
            rf"subluminal\.integrations\.{framework} needs (\S+): pip install '\1' \(No module .*\)"
        )
        assert re.fullmatch(wanted, said)


@requirement("sdk:integration-lazy")
def test_the_package_imports_no_framework(python: Callable[..., str]) -> None:
    said = python("import sys, subluminal.integrations; print(*sys.modules)")
    loaded = {name.partition(".")[0] for name in said.split()}
    assert not loaded & {"langchain", "agents", "anthropic", "pydantic_ai", "mcp", "asyncio"}
