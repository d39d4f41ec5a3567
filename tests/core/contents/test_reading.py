"""What core finds in arguments: each class of data, its near misses, texts, and one pass for all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.contents.data_examples import HITS, NEAR_MISSES
from tests.core.records.redaction.shape_examples import EXAMPLES
from tests.requirements import requirement

from subluminal.canonical import encode
from subluminal.config.settings import RedactPattern
from subluminal.contracts.vocabulary import DataClass
from subluminal.core.contents.reading import ContentReader
from subluminal.core.contents.source import data_in
from subluminal.core.records.redaction.redactor import Redactor
from subluminal.policy.contents import Texts, TextTest
from subluminal.secrets.value import SecretValue

READER = ContentReader(Redactor())


def data_of(args, reader=READER):
    return reader.read(encode(args), wants_data=True, words=frozenset()).data


@requirement("trust:data-classes")
@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in HITS.items() for text in texts]
)
def test_a_class_is_found(name, text):
    assert DataClass(name) in data_of({"deep": [{"value": f"see {text} there"}]})
    assert data_of({"value": text}) == {name}


@requirement("trust:data-classes")
@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in NEAR_MISSES.items() for text in texts]
)
def test_a_near_miss_is_not_found(name, text):
    assert DataClass(name) not in data_of({"value": text, "other": f"see {text} there"})


@requirement("trust:data-secrets")
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_secret_is_what_the_redactor_masks(name):
    for text in [*EXAMPLES[name][0], *EXAMPLES[name][1]]:
        masked = Redactor().redact_bytes(encode({"value": text}))[1]
        assert (DataClass.SECRET in data_of({"value": text})) == bool(masked), text


@requirement("trust:data-secrets")
def test_known_values_and_patterns_of_the_user_are_secrets_too():
    own = [RedactPattern(name="badge", pattern="BADGE-[0-9]+")]
    reader = ContentReader(Redactor([SecretValue("K", "hunter22-very-long")], (), own))

    assert data_of({"x": "say hunter22-very-long"}, reader) == {DataClass.SECRET}
    assert data_of({"x": "BADGE-17"}, reader) == {DataClass.SECRET}
    assert data_of({"x": "BADGE"}, reader) == frozenset()


def test_a_number_and_a_key_are_read_too():
    """A key with personal data is data as well; texts of rules never look at keys."""
    assert data_of({"card": 4111111111111111}) == {DataClass.PCI}
    assert data_of({"kim@example.com": 1}) == {DataClass.PII_EMAIL}
    assert data_in({"a": ["219-09-9999", "+1 212 555 0123"]}) == {"PII.ssn", "PII.phone"}


def test_nobody_looks_for_data_if_no_rule_asks():
    found = READER.read(encode({"a": "kim@example.com"}), wants_data=False, words=frozenset({"x"}))

    assert found.data is None
    assert "x" not in found.absent  # it is in `example`


def test_many_sets_of_rules_keep_no_more_patterns_than_they_may():
    reader = ContentReader(Redactor())
    for number in range(70):
        reader.read(b"{}", wants_data=False, words=frozenset({f"word{number}"}))

    assert len(reader._questions) <= 64


WORDS = [
    "rm -rf",
    'say "x"',
    "a\\b",
    "1e21",
    "straße",
    "ss",
    "k",
    "true",
    "null",
    "\u212a",
    "e",
    "5",
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**22), 10**22) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.sampled_from('rm -fs"\\\n\u212akKßS1e25truenl'), max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@requirement("trust:text-values")
@given(st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=3), st.sampled_from(WORDS))
def test_a_text_that_is_absent_is_in_no_value(args, word):
    """The pass over canonical JSON never hides a text from the exact test over the values."""
    test = TextTest({"any_of": [word], "none_of": [], "regex": None})
    found = READER.read(encode(args), wants_data=False, words=frozenset(test.words))

    assert Texts(args, None, found.absent).holds(test) == Texts(args).holds(test)
