"""The first policy: it compiles without a warning, whatever the tools are called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Action, Layer
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine
from subluminal.policy.lint.linting import lint
from subluminal.policy.loading import parse_bundle
from subluminal.policy.starter import KnownTool, starter_policy

READ_ONLY, WRITES = {"readOnlyHint": True}, {"readOnlyHint": False}


def made(*tools, mode="guardrails", largest_run=0):
    return starter_policy(tools, mode=mode, today="2026-11-15", largest_run=largest_run)


def uncommented(text):
    """The policy with its examples in use."""
    lines = [
        line.replace("  # ", "  ", 1) if line.startswith(("  # - ", "  #   ")) else line
        for line in text.splitlines()
    ]
    return "\n".join(lines) + "\n"


def checked(text):
    loaded = parse_bundle(text.encode(), "policy.yaml")
    return loaded.bundle, [problem for problem in lint(loaded) if problem.severity != "note"]


def classes_of(text, server, tool):
    engine = Engine([(Layer.USER, compile_bundle(checked(text)[0]))], Identity())
    call = Call(server, tool, {}, "00" * 32)
    found = engine.evaluate(call, MemoryCounters(), wall_ms=0, mono_ms=0)
    assert found.decision.action is Action.ALLOW
    return found.risk_classes


@pytest.mark.parametrize(
    ("name", "annotations", "writes"),
    [
        ("read_file", {}, False),
        ("write_file", {}, True),
        ("deleteFile", {}, True),
        ("list_deleted_files", {}, False),
        ("search", {}, False),
        ("SQLQuery", {}, False),
        ("mystery", {}, False),
        ("mystery", WRITES, True),
        ("write_file", READ_ONLY, False),
        ("mystery", {"destructiveHint": True}, True),
        ("mystery", {"destructiveHint": "yes", "readOnlyHint": None}, False),
        ("what?", WRITES, True),
        ("a: b\n# c", WRITES, True),
        ("no", WRITES, True),
    ],
)
def test_tools_that_change_something_are_tagged(name, annotations, writes):
    text = made(KnownTool("s", name, annotations), KnownTool("other", "write_it", {})).text

    assert classes_of(text, "s", name) == ({"write_like"} if writes else set())
    assert classes_of(text, "t", name) == set(), "another server's tool"


@pytest.mark.parametrize(
    ("annotations", "asks"),
    [({}, True), ({"destructiveHint": False}, False), ({"destructiveHint": True}, True)],
)
def test_tools_that_destroy_are_in_an_example(annotations, asks):
    tools = [KnownTool("db", "drop_table", annotations), KnownTool("db", "write_row", {})]
    tools.append(KnownTool("x", "purge", {}))
    bundle, problems = checked(uncommented(made(*tools).text))

    assert problems == []
    rules = {rule.rule_id: rule for rule in bundle.rules}
    assert ("ask-db" in rules) is asks
    assert rules["ask-x"].effect.require == "approval"
    assert "no-force-push" in rules


def test_without_tools_the_usual_names_are_taken():
    starter = made()
    bundle, problems = checked(starter.text)

    assert (problems, starter.tools, starter.writes) == ([], 0, 0)
    assert "without any recorded tools" in starter.text
    assert classes_of(starter.text, "any", "delete_all") == {"write_like"}
    assert checked(uncommented(starter.text))[1] == []
    assert bundle.mode == "guardrails"
    assert made(KnownTool("s", "read", {})).writes == 0


@pytest.mark.parametrize(
    ("largest", "limit", "writes"), [(0, 1_000, 200), (400, 1_200, 240), (12_345, 38_000, 7_600)]
)
def test_the_budget_leaves_room_for_the_largest_run(largest, limit, writes):
    starter = made(largest_run=largest)
    limits = {
        rule.rule_id: rule.effect.budget.limit_calls
        for rule in checked(starter.text)[0].rules
        if rule.rule_id.endswith("-budget")
    }
    assert limits == {"run-budget": limit, "write-budget": writes}
    assert ("largest recorded run" in starter.text) is bool(largest)


def test_names_that_no_rule_can_name_are_left_out():
    tools = [
        KnownTool("s", "write_[REDACTED:token]", {}),
        KnownTool("s", "write_" + "x" * 256, {}),
        KnownTool("", "write", {}),
        KnownTool("s", "write_ok", {}),
    ]
    starter = made(*tools)
    assert (starter.tools, starter.writes) == (1, 1)
    assert "REDACTED" not in starter.text


def test_servers_whose_names_look_alike_get_rules_of_their_own():
    starter = made(*[KnownTool(server, "write", {}) for server in ("a b", "a-b", "日本", "本")])
    ids = [rule.rule_id for rule in checked(starter.text)[0].rules]
    assert ids[:4] == ["writes-a-b", "writes-a-b-2", "writes", "writes-2"]


def test_a_thousand_tools_make_a_readable_policy():
    tools = [KnownTool("s", f"write_{number:05}_{'x' * 40}", {}) for number in range(1_000)]
    starter = made(*tools)
    assert checked(starter.text)[1] == []
    assert len(starter.text.splitlines()) < 600
    assert "  # 500 more are not listed." in starter.text
    assert max(map(len, starter.text.splitlines())) <= 104


names = st.text(min_size=1, max_size=12) | st.sampled_from(["write", "delete_x", "*", "[", "#"])
tools = st.builds(
    KnownTool,
    names,
    names,
    st.sampled_from([{}, WRITES, READ_ONLY, {"destructiveHint": True}]),
)


@given(st.lists(tools, max_size=8, unique_by=lambda tool: tool[:2]), st.integers(0, 10**6))
def test_any_tools_make_a_policy_that_lints_clean(known, largest_run):
    starter = made(*known, largest_run=largest_run)

    for text in (starter.text, uncommented(starter.text)):
        assert checked(text)[1] == []
