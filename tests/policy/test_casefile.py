"""Case files: what they may say, and that a misspelt one never passes as a test."""

import msgspec
import pytest

from subluminal.contracts.vocabulary import Client, Env, Layer
from subluminal.errors import InvalidInput
from subluminal.policy.casefile import parse_cases, wall_ms_of

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
        ("calls: []\nstart: noon", "c.yaml:9:8: case 1: `start`: `noon` is not a time with a zone"),
        ("calls: []\nstart: 2026-01-31T09:00:00", "c.yaml:9:8: case 1: `start`: `2026-01-31T09:00:00` is not a time with a zone"),
        ("calls: []\nidentity: {workload: {brnch: x}}", "c.yaml:9:23: case 1: unknown field `brnch` in `identity.workload`"),
        ("calls: []\nlayers: {user: x}", "c.yaml:1:1: case 1: needs `bundle` or `layers`, and not both"),
        ("note: 7\ncalls: []", "c.yaml:8:7: case 1: `note`: expected a string, got a whole number `7`"),
    ],
)  # fmt: skip
def test_a_wrong_case_is_told_with_its_place(rest, problem):
    assert problem in told(BUNDLE + rest)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "c.yaml: the file has no case"),
        ("7", "c.yaml:1:1: case 1: expected a mapping, got a whole number `7`"),
        ("{calls: []}", "c.yaml:1:1: case 1: needs `bundle` or `layers`, and not both"),
        ("{layers: {usr: x}, calls: []}", "c.yaml:1:11: case 1: unknown layer `usr` in `layers`"),
        ("{bundle: 7, calls: []}", "c.yaml:1:10: expected a mapping, got a whole number `7`"),
    ],
)
def test_what_is_no_case_is_refused(text, problem):
    assert problem in told(text)


def test_problems_inside_a_bundle_are_told_at_their_place_in_the_case():
    text = BUNDLE.replace("mode: guardrails", "mode: guard") + "calls: []\n---\n7\n"
    assert told(text) == [
        "c.yaml:4:9: `mode`: unknown value `guard`",
        "c.yaml:10:1: case 2: expected a mapping, got a whole number `7`",
    ]


def test_text_problems_are_told_once():
    assert told(BUNDLE + "calls: []\ncalls: []\n") == ["c.yaml:9:1: duplicate key `calls`"]


def test_json_is_taken_too():
    value = {"bundle": "p.yaml", "calls": [{"server": "s", "tool": "t"}]}
    (case,) = parse_cases(msgspec.json.encode(value), "c.json")
    assert case.case.calls[0].server == "s"
