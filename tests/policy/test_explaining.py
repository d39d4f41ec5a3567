"""Explanations: the decision, every rule, the clause that failed, counters before and after."""

from tests.policy.bundles import bundle, rule, tools

from subluminal.contracts.identity import Identity
from subluminal.contracts.targets import PathTarget, Targets
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.explaining import Explanation, as_text, explain, with_disabled


def explained(*rules, repeat=1, args=None, **changes) -> Explanation:
    written = bundle(*rules, **changes)
    found = explain(
        compile_bundle(written), Identity(), ("s", "t", args or {}), wall_ms=0, repeat=repeat
    )
    return Explanation(found.evaluation, with_disabled(found.steps, written.rules))


def test_text_shows_each_rule_and_its_counter():
    found = explained(
        rule("allow", "a"),
        rule("deny", "off", enabled=False),
        rule("deny", "other", match=tools("x")),
        rule("budget", "b", limit_calls=1),
        repeat=2,
    )
    assert as_text(found) == [
        "BLOCK by rule `b` (BUDGET_EXCEEDED, warn)",
        "  the budget of 1 call in this run is spent",
        "",
        "rules, in order:",
        "    1. a (allow): matched, ALLOW (fine)",
        "    2. off (deny): disabled",
        "    3. other (deny): no match: `tool_name` does not match",
        "    4. b (budget): matched, BLOCK (the budget of 1 call in this run is spent); counter [1, 1] -> [2, 2]",
    ]


def test_a_counter_that_was_never_written_is_empty():
    assert as_text(explained(rule("budget")))[-1] == (
        "    1. budget (budget): matched; counter empty -> [1, 1]"
    )


def test_hints_suggestions_and_backoffs_are_shown():
    fixable = rule(
        "deny", match={"args": {"has_keys": ["k"]}}, hint_text="leave it", suggest={"k": {"remove": True}}
    )  # fmt: skip
    lines = as_text(explained(fixable, args={"k": 1, "j": 2}))
    assert "  hint: leave it" in lines
    assert '  suggested arguments: {"j":2}' in lines
    slow = rule("rate_limit", capacity=1)
    assert "  retry after 100 ms" in as_text(explained(slow, repeat=2))
    plain_hint = rule("deny", action="REJECT_WITH_HINT", hint_text="no")
    assert "  hint: no" in as_text(explained(plain_hint))


def test_what_observe_would_have_done_is_shown():
    found = explained(rule("deny"), mode="observe")
    assert "  would be BLOCK: the policy is in observe mode" in as_text(found)
    assert found.plain()["would_be"]["action"] == "BLOCK"


def test_a_policy_that_does_not_apply_has_no_steps():
    found = explained(rule("deny"), rule("tag", enabled=False), selectors={"env": ["ci"]})
    assert found.steps == []
    assert as_text(found) == [
        "ALLOW (POLICY_NOT_APPLICABLE, info)",
        "  the policy's selectors do not match this run",
    ]


def test_json_has_decision_and_steps():
    found = explained(rule("deny", match={"args": {"has_keys": ["k"]}}), rule("tag")).plain()
    assert found["decision"]["reason_code"] == "DEFAULT_ALLOW"
    assert [(step["rule_id"], step["result"], step["clause"]) for step in found["steps"]] == [
        ("deny", "no match", "args"),
        ("tag", "matched", ""),
    ]
    assert found["risk_classes"] == ["write_like"]
    assert found["policy"]["policy_id"] == "p"


def test_targets_are_shown_by_kind_and_not_too_many_of_them():
    targets = Targets(
        commands=[["git", "push"], *([str(n)] for n in range(6))],
        paths=[PathTarget("/a", "write"), PathTarget("/b", "read")],
        hosts=["a.example"],
        opaque=True,
        why=["`sh` reads commands from its input"],
    )
    lines = as_text(Explanation(explained(rule("allow", "all")).evaluation, [], targets))
    assert lines[2:7] == [
        "  runs: git push; 0; 1; 2; 3; and 2 more",
        "  writes: /a",
        "  reads: /b",
        "  hosts: a.example",
        "  opaque: `sh` reads commands from its input",
    ]


def test_a_call_without_targets_shows_none():
    found = explained(rule("allow", "all"))
    assert as_text(Explanation(found.evaluation, [], Targets())) == as_text(
        Explanation(found.evaluation, [], None)
    )
