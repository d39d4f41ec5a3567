"""Guards, combinators, plans and packs."""

from typing import Any

import msgspec
import pytest
from tests.kernel.making import Broken, Minimum, Watching, envelope, policy
from tests.kernel.test_adjudication import NO, RULE, code_of
from tests.requirements import requirement

from subluminal.errors import PackConformanceError, PlanConformanceError, SubluminalError
from subluminal.kernel import (
    Basis,
    Defer,
    Execute,
    Pack,
    Plan,
    RenderedPrompt,
    Rewrite,
    Taint,
    ToolClassification,
    adjudicate,
    adjudicate_with_trace,
    all_of,
    assert_pack_conformance,
    assert_plan_read_only,
    basis,
    clamp,
    confirm,
    constant,
    escalate,
    filter_read_only,
    first_match,
    guard_name,
    named,
    refuse,
    safe_plan,
    state_defer,
    static_planner,
    system_taint_policy,
    tainted,
    threshold,
    with_basis_audit,
)
from subluminal.kernel.decisions import Refuse

TOOLS = ToolClassification(read_only=["search", "get"], mutating=["pay"])
PLAN = Plan(["search"], ["order.submit"])


def pack(**changed: Any) -> Pack:
    made = Pack("shop", "1.0.0", ["order.submit"], policy(), static_planner(PLAN), ["mine.no"])
    return msgspec.structs.replace(made, **changed)


def always(*_: Any) -> bool:
    return True


@requirement("003:combinators")
def test_combined_guards_take_the_first_opinion() -> None:
    silent = constant(None)
    combined = first_match(silent, constant(NO), constant(Execute()))
    assert combined(envelope(), None) == NO
    assert all_of(silent, silent)(envelope(), None) is None
    assert first_match()(envelope(), None) is None


@requirement("003:combinators")
def test_wrapped_guards_keep_their_names() -> None:
    a, b = named("a", constant(None)), named("b", lambda _e, _s: None)
    assert guard_name(first_match(a)) == "a"
    assert guard_name(first_match(a, b, lambda _e, _s: None)) == "first_match(a, b, unnamed)"
    watched = with_basis_audit(pack(policy=policy(state=[a])), Watching())
    assert guard_name(watched.policy.state_guards[0]) == "a"


def test_a_name_is_given_once() -> None:
    guard = named("a", lambda _e, _s: None)
    assert named("a", guard) is guard
    with pytest.raises(SubluminalError, match="already named `a`"):
        named("b", guard)
    with pytest.raises(SubluminalError, match="empty"):
        named("", guard)
    assert guard_name(lambda _e, _s: None) is None
    with pytest.raises(SubluminalError, match="`method` cannot be named"):
        named("m", static_planner(PLAN).plan)
    assert guard_name(7) is None


@pytest.mark.parametrize(
    ("comparison", "hits"), [(">=", [5, 6]), ("<=", [4, 5]), (">", [6]), ("<", [4])]
)
def test_threshold_compares(comparison: str, hits: list[int]) -> None:
    guard = threshold(value=lambda _e, state: state, limit=5, decision=NO, comparison=comparison)
    assert [number for number in (4, 5, 6) if guard(envelope(), number)] == hits
    assert guard(envelope(), None) is None
    assert guard_name(guard) is None


@pytest.mark.parametrize("number", [float("nan"), float("inf"), "9", True])
def test_threshold_refuses_what_has_no_place_among_the_numbers(number: Any) -> None:
    guard = threshold(value=lambda _e, state: state, limit=5, decision=NO)
    decision = adjudicate(envelope(), number, policy(business=[guard], default="EXECUTE"))
    assert code_of(decision) == "guard_panic"


def test_threshold_may_make_its_decision_and_may_not_apply() -> None:
    made = threshold(
        value=lambda _e, _s: 7,
        limit=5,
        decision=lambda _e, _s, n: Execute((basis("business", "rule_satisfied", n=n),)),
    )
    said = made(envelope(), None)
    assert said is not None
    assert said.basis[0].detail == {"n": 7}
    skipped = threshold(value=pytest.fail, limit=5, decision=NO, when=lambda _e, _s: False)
    assert skipped(envelope(), None) is None
    with pytest.raises(SubluminalError, match="=="):
        threshold(value=pytest.fail, limit=5, decision=NO, comparison="==")


@requirement("003:rewrite-scope")
@pytest.mark.parametrize("wrap", [lambda n: n, lambda n: {"value": n, "taint": "TRUSTED"}])
def test_clamp_caps_a_number_and_keeps_the_rest(wrap: Any) -> None:
    made = envelope({"qty": wrap(9), "sku": "x"}, taint="TRUSTED")
    decision = adjudicate(made, None, policy(business=[clamp(field="qty", cap=5)]))
    assert isinstance(decision, Rewrite)
    assert decision.rewritten.payload == {"qty": wrap(5), "sku": "x"}
    assert decision.basis[-1] == basis(
        "business", "quantity_capped", field="qty", requested=9, cappedTo=5
    )
    assert decision.rewritten.nonce == made.nonce


def test_clamp_has_no_opinion_below_its_cap() -> None:
    by_state = clamp(field="qty", cap=lambda _e, state: state)
    assert by_state(envelope({"qty": 9}), 9) is None
    assert by_state(envelope({"qty": 9}), None) is None
    assert by_state(envelope({}), 5) is None
    assert clamp(field="qty", cap=1, when=lambda _e, _s: False)(envelope({"qty": 9}), None) is None
    text = policy(business=[clamp(field="qty", cap=1)], default="EXECUTE")
    assert code_of(adjudicate(envelope({"qty": "9"}), None, text)) == "guard_panic"


def test_the_other_factories_decide_when_asked() -> None:
    guards = [
        confirm(prompt="Sure?", when=always),
        confirm(prompt=lambda _e, _s: "Sure?", when=always, because=RULE),
        escalate(to="human", reason="large", when=always),
        state_defer(signal="paid", timeout_ms=1, when=always, because=RULE),
    ]
    kinds = [adjudicate(envelope(), None, policy(business=[guard])).kind for guard in guards]
    assert kinds == ["REQUEST_CONFIRMATION", "REQUEST_CONFIRMATION", "ESCALATE", "DEFER"]
    never: Any = {"when": lambda _e, _s: False}
    for guard in (
        confirm(prompt="Sure?", **never),
        escalate(to="human", reason="large", **never),
        state_defer(signal="paid", timeout_ms=1, **never),
    ):
        assert guard(envelope(), None) is None
    with pytest.raises(ValueError):
        escalate(to="nobody", reason="r", when=always)


def test_system_kinds_need_trust() -> None:
    taint = system_taint_policy(["pay.confirm"])
    assert taint.minimum_for("pay.confirm") is Taint.TRUSTED
    assert taint.minimum_for("other") is Taint.UNTRUSTED


@requirement("003:planner")
def test_a_plan_shows_read_tools_and_own_intents_only() -> None:
    planner = safe_plan(static_planner(PLAN), TOOLS, pack())
    assert planner.plan(None, None) == PLAN
    leaking = Plan(["search", "pay", "unheard"], ["order.submit", "alien"])
    with pytest.raises(PlanConformanceError) as raised:
        safe_plan(static_planner(leaking), TOOLS, pack()).plan(None, None)
    assert raised.value.mutating_tools_leaked == ("pay", "unheard")
    assert raised.value.intents_leaked == ("alien",)
    assert_plan_read_only(Plan([], ["alien"]), TOOLS)
    with pytest.raises(PlanConformanceError, match="not a Plan"):
        safe_plan(static_planner(None), TOOLS).plan(None, None)  # type: ignore[arg-type]


@requirement("003:planner")
def test_a_tool_is_read_or_mutating_and_never_both() -> None:
    assert filter_read_only(TOOLS, ["pay", "get", "unheard", "search"]) == ["get", "search"]
    with pytest.raises(SubluminalError, match="`x` is both"):
        ToolClassification(read_only=["x"], mutating=["x"])
    assert RenderedPrompt("s", [], 5).max_tokens == 5


@requirement("003:pack-conformance")
@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"id": ""}, "id is empty"),
        ({"version": None}, "version is empty"),
        ({"contract": "v9"}, "contract"),
        ({"intents": []}, "intents are empty"),
        ({"intents": ["a", "a"]}, "intents are not unique"),
        ({"intents": "abc"}, "intents are not a list"),
        ({"basis_codes": ()}, "basis_codes are empty"),
        ({"basis_codes": ["", "x"]}, "not all words"),
        ({"signals": ["s", "s"]}, "signals are not unique"),
        ({"policy": None}, "no policy"),
        ({"policy": policy(default="MAYBE")}, "neither"),
        ({"policy": policy(default="EXECUTE")}, "default is EXECUTE"),
        ({"planner": None}, "no planner"),
    ],
)
def test_a_pack_has_its_shape(changed: dict[str, Any], problem: str) -> None:
    assert_pack_conformance(pack())
    with pytest.raises(PackConformanceError, match=problem) as raised:
        assert_pack_conformance(pack(**changed))
    assert len(raised.value.problems) == 1


def test_a_pack_may_execute_by_default_if_its_user_says_so() -> None:
    assert_pack_conformance(pack(policy=policy(default="EXECUTE")), allow_default_execute=True)


@requirement("003:drift")
@pytest.mark.parametrize(
    ("says", "drifts"),
    [
        (None, []),
        (NO, []),
        (7, []),
        (Refuse(refuse("STATE", "default_deny", "No.")), []),
        (Refuse(refuse("STATE", "surprise", "No.")), ["basis_code_drift"]),
        (Refuse(None), ["basis_code_drift"]),  # type: ignore[arg-type]
        (Execute(None), []),  # type: ignore[arg-type]
        (Execute((Basis("weather", "wet"), "x")), ["basis_vocabulary_drift"] * 2),  # type: ignore[arg-type]
        (Defer("paid", 1), []),
        (Defer("surprise", 1), ["defer_signal_drift"]),
        (Rewrite(envelope(taint="SYSTEM"), "r"), ["rewrite_taint_regression"]),
        (Rewrite(envelope(), "r"), []),
        (Rewrite(None, "r"), []),  # type: ignore[arg-type]
    ],
    ids=lambda value: str(value)[:50],
)
def test_words_that_a_pack_did_not_declare_are_reported(says: Any, drifts: list[str]) -> None:
    watching = Watching()
    made = pack(policy=policy(business=[lambda _e, _s: says]), signals=["paid"])
    watched = with_basis_audit(made, watching)
    assert adjudicate_with_trace(envelope(), None, watched.policy) == adjudicate_with_trace(
        envelope(), None, made.policy
    )
    assert [event.error_class for event in watching.of("record_sink_failure")] == drifts
    blind = with_basis_audit(made, Broken())  # type: ignore[arg-type]
    assert adjudicate(envelope(), None, blind.policy).kind


def test_a_watched_policy_keeps_its_taint_gate() -> None:
    made = pack(policy=policy(taint=Minimum("TRUSTED"), default="EXECUTE"))
    watched = with_basis_audit(made, Watching())
    made_of_fields = envelope({"a": tainted(1, "UNTRUSTED")}, taint="SYSTEM")
    assert code_of(adjudicate(made_of_fields, None, watched.policy)) == "taint_level_insufficient"
