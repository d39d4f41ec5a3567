"""Case files: what is read, what is refused, and what `want` compares."""

import msgspec
import pytest

from subluminal.contracts.decision import Decision, Hint, PolicyRef, Terminate
from subluminal.contracts.events import WouldBe
from subluminal.contracts.vocabulary import Action, Client, Env, HintKind, Layer, Severity
from subluminal.errors import InvalidInput
from subluminal.policy.casefile import WANTS, differences, parse_cases, wall_ms_of
from subluminal.policy.evaluation import Evaluation

BUNDLE = """\
bundle:
  policy_id: p
  version: "1"
  mode: guardrails
  defaults: {decision_on_error: BLOCK}
  selectors: {}
  rules: []
"""


def told(text: str) -> list[str]:
    with pytest.raises(InvalidInput) as raised:
        parse_cases(text.encode(), "c.yaml")
    return [str(problem) for problem in raised.value.problems]


def test_the_identity_of_a_case_has_defaults():
    (case,) = parse_cases(f"{BUNDLE}calls: []".encode(), "c.yaml")
    assert (case.identity.env, case.identity.agent_id, case.identity.client) == (
        Env.DEV,
        "test",
        Client.CUSTOM,
    )
    assert (case.title, case.start_ms, case.line) == ("case 1", 0, 1)


def test_everything_may_be_given():
    (case,) = parse_cases(
        f"""note: all
{BUNDLE}identity: {{env: ci, agent_id: a, client: codex, principal: me, workload: {{labels: {{k: v}}}}}}
start: 2026-01-31T09:00:00+01:00
calls:
  - {{at_ms: 5, server: s, tool: t, args: {{a: 1}}, outcome: {{status: ERROR, latency_ms: 3}}, granted: [r], want: {{action: BLOCK, suggested_args: null}}}}
  - {{server: s, tool: t, args: null}}
""".encode(),
        "c.yaml",
    )
    assert case.title == "case `all`"
    assert case.start_ms == wall_ms_of("2026-01-31T08:00:00Z")
    assert case.identity.principal == "me"
    assert case.identity.workload.labels == {"k": "v"}
    assert case.case.calls[0].args == {"a": 1}
    assert case.case.calls[1].args is None
    assert case.policies[0][0] is Layer.REPOSITORY


def test_a_bundle_may_be_a_path_and_layers_come_in_their_order():
    cases = parse_cases(
        b"{bundle: p.yaml, calls: []}\n---\n{layers: {user: u.yaml, managed: m.yaml}, calls: []}",
        "c.yaml",
    )
    assert cases[0].policies == [(Layer.REPOSITORY, "p.yaml")]
    assert cases[1].policies == [(Layer.MANAGED, "m.yaml"), (Layer.USER, "u.yaml")]


def test_anchors_work():
    (case,) = parse_cases(
        f"{BUNDLE}calls:\n  - &c {{server: s, tool: t}}\n  - *c\n".encode(), "c.yaml"
    )
    assert case.case.calls[0] == case.case.calls[1]


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        ("calls: [{server: s, tool: t, want: {acton: BLOCK}}]", "c.yaml:8:37: case 1: call 1: unknown field `acton` in `want`"),
        ("calls: [{server: s, tool: t, want: {action: BLOK}}]", "c.yaml:8:45: case 1: call 1: `want.action`: unknown value `BLOK`"),
        ("calls: [{server: s, tool: t, want: {severity: 3}}]", "c.yaml:8:47: case 1: call 1: `want.severity`: unknown value `3`"),
        ("calls: [{server: s}]", "c.yaml:8:9: case 1: call 1: missing field `tool`"),
        ("calls: [{server: s, tool: t, arg: {}}]", "c.yaml:8:30: case 1: call 1: unknown field `arg`"),
        ("calls: [{server: s, tool: t, outcome: {latency_ms: -1}}]", "c.yaml:8:52: case 1: call 1: `outcome.latency_ms`: must be at least 0"),
        ("calls: [{server: s, tool: t, at_ms: 5}, {server: s, tool: t}, {server: s, tool: t, at_ms: 4}]", "c.yaml:8:91: case 1: call 3: `at_ms`: time runs backwards: 4 after 5"),
        ("calls: [{server: s, tool: t, at_ms: -1}]", "c.yaml:8:37: case 1: call 1: `at_ms`: time runs backwards: -1 after 0"),
        ("calls: []\nstart: noon", "c.yaml:9:8: case 1: `start`: `noon` is not a time with a time zone"),
        ("calls: []\nstart: 2026-01-31T09:00:00", "c.yaml:9:8: case 1: `start`: `2026-01-31T09:00:00` is not a time with a time zone"),
        ("calls: []\nidentity: {workload: {brnch: x}}", "c.yaml:9:23: case 1: unknown field `brnch` in `identity.workload`"),
        ("calls: []\nlayers: {user: x}", "c.yaml:1:1: case 1: needs either `bundle` or `layers`"),
        ("note: 7\ncalls: []", "c.yaml:8:7: case 1: `note`: expected a string, got a whole number `7`"),
    ],
)  # fmt: skip
def test_a_wrong_case_is_told_with_its_place(rest, problem):
    assert problem in told(BUNDLE + rest)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "c.yaml: the file contains no case"),
        ("7", "c.yaml:1:1: case 1: expected a mapping, got a whole number `7`"),
        ("{calls: []}", "c.yaml:1:1: case 1: needs either `bundle` or `layers`"),
        ("{layers: {usr: x}, calls: []}", "c.yaml:1:11: case 1: unknown layer `usr` in `layers`"),
        ("{bundle: 7, calls: []}", "c.yaml:1:10: expected a mapping, got a whole number `7`"),
    ],
)
def test_a_document_that_is_not_a_case_is_refused(text, problem):
    assert problem in told(text)


def test_problems_inside_a_bundle_are_told_at_their_place_in_the_case():
    text = BUNDLE.replace("mode: guardrails", "mode: guard") + "calls: []\n---\n7\n"
    assert told(text) == [
        "c.yaml:4:9: `mode`: unknown value `guard`",
        "c.yaml:10:1: case 2: expected a mapping, got a whole number `7`",
    ]


def test_text_problems_are_reported_once():
    assert told(BUNDLE + "calls: []\ncalls: []\n") == ["c.yaml:9:1: duplicate key `calls`"]


def test_json_is_taken_too():
    value = {"bundle": "p.yaml", "calls": [{"server": "s", "tool": "t"}]}
    (case,) = parse_cases(msgspec.json.encode(value), "c.json")
    assert case.case.calls[0].server == "s"


POLICY = PolicyRef(policy_id="p", policy_version="1", policy_hash="h")


def evaluation(**changes) -> Evaluation:
    decision = Decision(
        action=Action.REJECT_WITH_HINT,
        rule_id="r",
        severity=Severity.WARN,
        reason_code="NO",
        summary="no",
        backoff_ms=5,
        hint=Hint(hint_text="t", suggested_args={"n": 1}, hint_kind=HintKind.ARG_FIX),
        terminate=Terminate(terminate_code="c", terminate_message="m"),
    )
    return Evaluation(decision, POLICY, False, [], **changes)


OBSERVED = WouldBe(action=Action.BLOCK, rule_id="r", severity=Severity.WARN, reason_code="NO")


@pytest.mark.parametrize(
    "want",
    [
        {},
        {"action": "REJECT_WITH_HINT", "rule_id": "r", "severity": "warn", "reason_code": "NO"},
        {"summary": "no", "backoff_ms": 5, "hint_text": "t", "retry_advice": None},
        {"suggested_args": {"n": 1.0}, "hint_kind": "ARG_FIX"},
        {"terminate_code": "c", "terminate_message": "m"},
        {"policy_id": "p", "policy_version": "1", "forwarded": False, "would_be": None},
        {"risk_classes": ["b", "a"]},
    ],
)
def test_equal_fields_give_no_difference(want):
    assert differences(want, evaluation(risk_classes=frozenset("ab"))) == []


@pytest.mark.parametrize(
    "want", ["BLOCK", {"action": "BLOCK"}, {"rule_id": "r", "severity": "warn"}]
)
def test_an_observed_refusal_is_compared_by_action_or_fields(want):
    assert differences({"would_be": want}, evaluation(would_be=OBSERVED)) == []


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ({"action": "ALLOW"}, "REJECT_WITH_HINT"),
        ({"rule_id": None}, "r"),
        ({"backoff_ms": "5"}, 5),
        ({"would_be": "BLOCK"}, None),
        ({"would_be": {"actoin": "BLOCK"}}, None),
        ({"risk_classes": "a"}, ["a"]),
    ],
)
def test_a_different_field_is_reported_with_its_value(want, got):
    ((field, wanted, found),) = differences(want, evaluation(risk_classes=frozenset("a")))
    assert (field, wanted, found) == (*next(iter(want.items())), got)


def test_an_observed_refusal_that_is_not_wanted_is_reported():
    (difference,) = differences({"would_be": None}, evaluation(would_be=OBSERVED))
    assert difference.got["action"] == "BLOCK"
    (difference,) = differences({"would_be": "THROTTLE"}, evaluation(would_be=OBSERVED))
    assert difference.got == "BLOCK"


def test_every_field_can_be_read_off_a_bare_decision():
    bare = Decision(
        action=Action.ALLOW, rule_id=None, severity=Severity.INFO, reason_code="X", summary="s"
    )
    found = Evaluation(bare, POLICY, True, [])
    assert [name for name in WANTS if WANTS[name](found) is None] == [
        "rule_id", "backoff_ms", "constraints", "hint_text", "suggested_args", "retry_advice", "hint_kind",
        "terminate_code", "terminate_message", "would_be",
    ]  # fmt: skip
