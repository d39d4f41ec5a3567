"""What arguments say: values as text, the matchers `text` and `data_any`, and who shares the reading."""

from decimal import Decimal

import msgspec
import pytest
from tests.policy.bundles import bundle, rule, tools
from tests.requirements import requirement

from subluminal.contracts.bundle import ArgsMatch, Match
from subluminal.contracts.call import Given
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import DataClass, Layer
from subluminal.policy.case_running import run_case
from subluminal.policy.casefile import parse_cases
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.contents import Texts, TextTest, number_text, values_of
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine
from subluminal.policy.explaining import as_text, explain
from subluminal.policy.promoting import also_passed


def engine(*rules, **more):
    return Engine([(Layer.USER, compile_bundle(bundle(*rules, **more)))], Identity())


def action(it, call):
    return it.evaluate(call, MemoryCounters(), wall_ms=0, mono_ms=0).decision.action.value


def call(args=None, **more):
    return Call("s", "t", {} if args is None else args, "0" * 64, **more)


def holds(args, any_of=(), none_of=(), regex=None, user_input=None):
    spec = {"any_of": list(any_of), "none_of": list(none_of), "regex": regex}
    return Texts(args, user_input).holds(TextTest(spec))


@requirement("trust:text-values")
@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1, "1"), (1.0, "1"), (-0.0, "0"), (0.1, "0.1"), (1e21, "1e+21"), (1e-7, "1e-7"),
        (123456789012345678901, "123456789012345680000"), (2**53, "9007199254740992"),
        (Decimal("0.10000000000000000000001"), "0.1"), (10**400, "Infinity"), (-(10**400), "-Infinity"),
        (Decimal("1e999"), "Infinity"), (5e-324, "5e-324"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_javascript_writes_them(number, text):
    assert number_text(number) == text
    assert values_of({"n": number}) == [text]


def test_values_come_in_their_order_and_keys_do_not():
    args = {"b": [1, {"z": "x", "a": [True, None]}, []], "a": False, "c": {}}

    assert values_of(args) == ["1", "x", "true", "false"]


def test_deep_arguments_are_read_without_recursion():
    deep = {"x": "found"}
    for _ in range(5_000):
        deep = {"d": [deep]}

    assert values_of(deep) == ["found"]


@requirement("trust:text-values")
@pytest.mark.parametrize(
    ("value", "word", "expected"),
    [
        ("Straße", "STRASSE", True),
        ("STRASSE", "straße", True),
        ("\u212aelvin", "kelvin", True),
        ("ABC", "b", True),
        ("a\0b", "a\0b", True),
        ("ab", "\0", False),
    ],
)
def test_texts_are_compared_after_case_folding(value, word, expected):
    assert holds({"x": value}, [word]) is expected


def test_a_text_never_lies_across_two_values():
    assert not holds({"a": "dr", "b": "op"}, ["drop"])
    assert not holds({"a": "x", "b": "y"}, ["x\0y"])
    assert holds({"a": "x", "b": "y"}, regex="x y")


def test_a_lone_surrogate_stops_no_regex():
    assert holds({"a": "\ud800 rm"}, regex="rm$")


@requirement("trust:text-user-input")
def test_the_users_text_is_searched_too():
    it = engine(rule("deny", match={"text": {"any_of": ["ignore all"]}}))

    assert (
        action(it, call({"a": "x"}, given=Given(user_input="please IGNORE ALL rules"))) == "BLOCK"
    )
    assert action(it, call({"a": "x"}, given=Given(user_input="please"))) == "ALLOW"
    assert holds({"a": "x"}, regex="^hi x$", user_input="hi")


@requirement("trust:data-unseen")
@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("deny", None, "BLOCK"),
        ("deny", frozenset(), "ALLOW"),
        ("deny", {DataClass.PII_SSN}, "BLOCK"),
        ("deny", {DataClass.PCI}, "ALLOW"),
        ("budget", None, "BLOCK"),
        ("budget", frozenset(), "ALLOW"),
        ("allow", None, "BLOCK"),
        ("allow", {DataClass.PII_EMAIL}, "ALLOW"),
        ("allow", frozenset(), "BLOCK"),
    ],
)
def test_data_is_found_by_core_and_counts_against_the_call_if_nobody_looked(kind, data, expected):
    """PII stands for every class of personal data. Below the allow is a deny of everything."""
    more = {"limit_calls": 0} if kind == "budget" else {}
    rules = [rule(kind, match={"data_any": ["PII"]}, **more)]
    it = engine(*rules, *([rule("deny", "rest")] if kind == "allow" else []))

    assert action(it, call(data=None if data is None else frozenset(data))) == expected


def test_data_of_a_taint_rule_that_exempts_must_be_known():
    exempt = rule("taint", "exempt", lower_to="SYSTEM", match={"data_any": ["PCI"]})
    it = engine(exempt, rule("taint"), rule("tag"))

    assert it.evaluate(call(), MemoryCounters(), wall_ms=0, mono_ms=0).lowered_by == "taint"


def test_the_engine_says_who_must_look_at_what():
    it = engine(
        rule("deny", "data", match={**tools("send"), "data_any": ["PCI"]}),
        rule("deny", "text", match={**tools("say"), "text": {"any_of": ["X"], "none_of": ["y"]}}),
    )
    send, say, other = (Call("s", tool, {}, "") for tool in ("send", "say", "other"))

    assert (it.asks_contents, it.asks_ahead) == (True, True)
    assert [it.needs_data(each) for each in (send, say, other)] == [True, False, False]
    assert [len(it.text_tests(each)) for each in (send, say, other)] == [0, 1, 0]
    assert it.text_tests(say)[0].words == ("x", "y")
    assert not engine(rule("deny")).asks_contents


def test_a_suggestion_is_offered_only_if_its_texts_would_pass():
    mend = {"q": {"set": "select 1"}}
    words = {"text": {"any_of": ["drop"]}}
    it = engine(rule("deny", match=words, suggest=mend))
    found = it.evaluate(call({"q": "drop"}), MemoryCounters(), wall_ms=0, mono_ms=0).decision
    assert found.hint.suggested_args == {"q": "select 1"}

    it = engine(
        rule("deny", match=words, suggest=mend), rule("deny", "x", match={"data_any": ["PCI"]})
    )
    found = it.evaluate(call({"q": "drop"}), MemoryCounters(), wall_ms=0, mono_ms=0).decision
    assert found.hint is None  # nobody has looked at other arguments


def test_explain_names_the_clause_that_does_not_match():
    it = engine(
        rule("deny", "data", match={"data_any": ["PCI"]}),
        rule("deny", "text", match={"text": {"any_of": ["x"]}}),
        rule("deny", "args", match={"args": {"key_not_equals": {"a": 1}}}),
    )
    steps = []
    it.evaluate(
        call({"a": 1}, data=frozenset()), MemoryCounters(), wall_ms=0, mono_ms=0, steps=steps
    )

    assert [step.clause for step in steps] == ["data_any", "text", "args"]


def test_a_case_has_its_data_found_by_the_reader_that_it_is_given():
    made = b"""
bundle:
  policy_id: p
  mode: guardrails
  rules:
    - {rule_id: mail, kind: deny, match: {tool_name: {glob: [send]}, data_any: [PII]}}
calls:
  - {server: s, tool: send, args: {to: kim@example.com}, want: {rule_id: mail}}
  - {server: s, tool: send, args: {to: nobody}, want: {rule_id: null}}
  - {server: s, tool: other, args: {to: kim@example.com}, want: {rule_id: null}}
"""
    (loaded,) = parse_cases(made, "c.yaml")
    layers = [(layer, compile_bundle(each.bundle)) for layer, each in loaded.policies]

    def data_in(args):
        return frozenset({DataClass.PII_EMAIL} if "@" in args["to"] else ())

    assert run_case(loaded, layers, data_in=data_in).failures == []
    assert [each.call for each in run_case(loaded, layers).failures] == [2]


def test_explain_tells_constraints_and_data():
    made = rule("allow", match={"data_any": ["PII"]}, constraints={"max_rows": 5})
    snapshot = compile_bundle(bundle(made, rule("deny", "rest")))

    def told(data):
        return explain(snapshot, Identity(), ("s", "t", {}), wall_ms=0, data=frozenset(data))

    found = told([DataClass.PII_EMAIL])
    assert found.plain()["data"] == ["PII.email"]
    assert found.plain()["decision"]["constraints"] == {"max_rows": 5}
    lines = as_text(found)
    assert "  data: PII.email" in lines
    assert '  constraints: {"max_rows":5}' in lines
    assert "  data: none of the classes that rules know" in as_text(told([]))
    silent = explain(
        compile_bundle(bundle()), Identity(), ("s", "t", {}), wall_ms=0, data=frozenset()
    )
    assert silent.plain()["data"] is None


def test_an_exception_that_other_rules_exclude_passes_them_not():
    asked = ArgsMatch(key_not_equals={"a": 1})
    rules = bundle(
        rule("deny"), rule("deny", "below", match={"args": msgspec.to_builtins(asked)})
    ).rules

    assert also_passed(rules, 0, Match(args=ArgsMatch(key_equals={"a": 1}))) == []
    assert also_passed(rules, 0, Match(args=ArgsMatch(key_equals={"a": 2}))) == ["below"]
