"""A diff without a critical change never lets a call pass that was refused before."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.policy.bundles import bundle, rule, tools

from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Action, Layer
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.diff.diffing import diff
from subluminal.policy.evaluation import Call, Engine

TOOLS = ["x", "xy", "y"]
ALL_GRANTS = frozenset((Layer.USER.value, name) for name in "abcdefgh")
matches = st.sampled_from(
    [{}, tools("x"), tools("y"), tools("x*"), tools("x", "y"), {"risk_class": ["c"]}, {"risk_class": ["d"]}]
)  # fmt: skip


@st.composite
def rules(draw, rule_id):
    kind = draw(st.sampled_from(["allow", "deny", "deny", "tag"]))
    changes = {}
    if kind == "tag":
        changes["add_risk_class"] = draw(st.sampled_from([["c"], ["d"], ["c", "d"]]))
    elif draw(st.sampled_from([False, False, True])):
        changes["require"] = "approval"
    enabled = draw(st.sampled_from([True, True, True, False]))
    return rule(kind, rule_id, match=draw(matches), enabled=enabled, **changes)


@st.composite
def edited(draw):
    """Two lists of rules, the second with a few edits."""
    old = [draw(rules(name)) for name in "abcd"[: draw(st.integers(1, 4))]]
    new = list(old)
    for _ in range(draw(st.integers(1, 2))):
        edit = draw(st.sampled_from(["remove", "add", "replace", "swap"]))
        index = draw(st.integers(0, len(new)))
        if edit == "add":
            new.insert(index, draw(rules(draw(st.sampled_from("efgh")))))
        elif index < len(new):
            if edit == "remove":
                del new[index]
            elif edit == "replace":
                new[index] = draw(rules(new[index]["rule_id"]))
            else:
                new[0], new[index] = new[index], new[0]
    assume(len({each["rule_id"] for each in new}) == len(new))
    return old, new


def refused(written, tool: str, granted: frozenset) -> bool:
    engine = Engine([(Layer.USER, compile_bundle(bundle(*written)))], Identity())
    call = Call("s", tool, {}, "0" * 64, granted)
    found = engine.evaluate(call, MemoryCounters(), wall_ms=0, mono_ms=0)
    return found.decision.action is not Action.ALLOW


@given(edited())
@settings(max_examples=800)
def test_what_was_refused_stays_refused_unless_diff_says_critical(pair):
    old, new = pair
    if any(change.severity == "critical" for change in diff(bundle(*old), bundle(*new))):
        return
    for tool in TOOLS:
        for granted in (frozenset(), ALL_GRANTS):
            assert not refused(old, tool, granted) or refused(new, tool, granted)
