"""Every shape hits its examples, misses near misses, and is a complete row of the table."""

import pytest
from tests.core.records.redaction.shape_examples import EXAMPLES

from subluminal.core.records.redaction.redactor import Redactor
from subluminal.core.records.redaction.shapes import SHAPES

HITS = [(name, text) for name, (hits, _) in EXAMPLES.items() for text in hits]
NEAR_MISSES = [(name, text) for name, (_, misses) in EXAMPLES.items() for text in misses]
BY_NAME = {shape.name: shape for shape in SHAPES}
ALL = Redactor()


def test_every_shape_has_hits_and_near_misses() -> None:
    assert set(EXAMPLES) == set(BY_NAME)
    assert len(BY_NAME) == len(SHAPES), "a name is there twice"
    assert all(hits and len(misses) >= 2 for hits, misses in EXAMPLES.values())


@pytest.mark.parametrize(("name", "text"), HITS)
def test_hit_is_masked_and_flagged(name: str, text: str) -> None:
    alone = Redactor(shapes=[BY_NAME[name]])
    for around in ("{}", "before {} after", "a\n{}\nb", "x='{}'", "({})"):
        masked, flags = alone.redact(around.format(text))
        assert flags == (name,)
        assert f"[REDACTED:{name}]" in masked
    assert name in ALL.redact(text)[1] or name in ("model_provider_key", "password", "basic_auth")


@pytest.mark.parametrize(("name", "text"), NEAR_MISSES)
def test_near_miss_is_left_alone(name: str, text: str) -> None:
    assert Redactor(shapes=[BY_NAME[name]]).redact(text) == (text, ())


@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox jumps over the lazy dog. " * 20,
        '{"sha256":"' + "0123456789abcdef" * 4 + '","commit":"' + "89abcdef01" * 4 + '"}',
        "PATH=/usr/bin:/bin\nHOME=/home/u\nPWD=/home/u\nSHLVL=1\nLANG=C.UTF-8\n",
        '{"id":"018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f","url":"https://example.com/a?b=c#d"}',
        "def secret_santa(tokens): return [t for t in tokens if t.password is None]",
        "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAAAAUA" * 30,
        "Please enter your password: ",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert ALL.redact(text) == (text, ())
