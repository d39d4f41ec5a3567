"""A rule that cannot match changes nothing, wherever it stands (Pack 2.3)."""

from hypothesis import given
from hypothesis import strategies as st
from tests.differential import generated
from tests.differential.driving import Product, answers
from tests.differential.generated import Chooser, drawn

NEVER = [
    {"tool_name": {"glob": ["no_such_tool"]}},
    {"tool_name": {"glob": ["zz*", "*zz", "z?z"]}},
    {"server_name": {"regex": ["^nobody$"]}},
    {"risk_class": ["unheard_of"]},
    {"tool_name": {"glob": ["push"], "regex": []}, "server_name": {"glob": ["push"]}},
]


def idle_rule(choose: Chooser) -> dict:
    rule = generated.rule(choose, "")
    return rule | {"match": choose.one(NEVER)}


def with_idle(bundle, idle, places):
    rules = list(bundle["rules"])
    for number, (rule, place) in enumerate(zip(idle, places, strict=False)):
        rules.insert(place % (len(rules) + 1), rule | {"rule_id": f"idle{number}"})
    return bundle | {"rules": rules}


@given(
    drawn(generated.bundle),
    st.lists(drawn(idle_rule), min_size=1, max_size=4),
    st.lists(st.integers(0, 20), min_size=4, max_size=4),
    drawn(generated.identity),
    drawn(generated.calls),
)
def test_rules_that_cannot_match_change_nothing(bundle, idle, places, identity, calls):
    plain = Product([("user", bundle)], identity)
    padded = Product([("user", with_idle(bundle, idle, places))], identity)

    assert list(answers(padded, calls)) == list(answers(plain, calls))
