"""No call makes evaluation raise, whatever its names and arguments are."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from tests.differential import generated
from tests.differential.driving import START_MS, Product
from tests.differential.generated import KEYS, drawn

from subluminal.contracts.vocabulary import Action

texts = st.text(st.characters(), max_size=20)
numbers = st.one_of(
    st.integers(),
    st.integers(10**300, 10**301),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.just(Decimal("1E999999")),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=8,
)
arguments = st.one_of(
    st.none(),
    st.dictionaries(st.one_of(st.sampled_from(KEYS), texts), values, max_size=4),
)
names = st.one_of(
    texts,
    st.sampled_from(["push", "\ud800", "a\udfffb", "\x00", "n" * 257, "ö" * 128, "\n"]),
)


@given(drawn(generated.layers), st.lists(st.tuples(names, names, arguments), max_size=4))
def test_any_names_and_any_arguments_get_a_decision(layers, calls):
    product = Product(layers, {})
    for now, (server, tool, args) in enumerate(calls):
        step = {"server": server, "tool": tool, "args": args, "granted": frozenset()}

        answer, found = product.call(step, START_MS, now, args_hash="ab" * 32)

        assert answer["action"] in list(Action)
        product.end(found, "ERROR", 1, now)
