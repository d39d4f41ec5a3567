"""Hundreds of secrets in every encoding and nesting: none comes through (unprintable-secrets)."""

import json

import pytest
from tests.core.records.redaction.canaries import ENCODERS, leaks, make_canaries
from tests.requirements import requirement

from subluminal.core.records.redaction.redactor import Redactor
from subluminal.secrets.value import SecretValue

CANARIES = make_canaries(300)
GROUPS = [CANARIES[at : at + 20] for at in range(0, len(CANARIES), 20)]
REDACTORS = [(Redactor(group), group) for group in GROUPS]
"""A server has few secrets, so most tests use small groups; one test below uses all at once."""


def _pairs() -> list[tuple[Redactor, SecretValue]]:
    return [(redactor, canary) for redactor, group in REDACTORS for canary in group]


@pytest.mark.parametrize("encoding", ENCODERS)
@requirement("4.1:not-previewed")
def test_no_canary_survives_in(encoding: str) -> None:
    encode = ENCODERS[encoding]
    for redactor, canary in _pairs():
        text = f"before {encode(canary.reveal())} after"
        masked, flags = redactor.redact(text)
        assert not leaks(masked.encode(), canary), (encoding, canary)
        assert canary.name in flags, (encoding, canary)
        assert masked.startswith("before ")
        assert masked.endswith(" after")


@pytest.mark.parametrize("encoding", ENCODERS)
def test_a_preview_that_was_json_is_json(encoding: str) -> None:
    encode = ENCODERS[encoding]
    for redactor, canary in _pairs():
        document = {"a": [1, {"b": encode(canary.reveal())}], encode(canary.reveal()): None}
        for text in (json.dumps(document), json.dumps(document, ensure_ascii=False, indent=1)):
            masked, _ = redactor.redact(text)
            assert isinstance(json.loads(masked), dict)
            assert not leaks(masked.encode(), canary)


def test_an_environment_dump_and_a_huge_payload_hold_no_canary() -> None:
    dump = "\n".join(f"{canary.name.upper()}={canary.reveal()}" for canary in CANARIES)
    noise = "lorem ipsum dolor sit amet " * 40_000
    text = json.dumps({"env": dump, "noise": noise})
    masked, flags = Redactor(CANARIES).redact(text)
    assert len(flags) >= len(CANARIES)
    assert json.loads(masked)["noise"] == noise
    for canary in CANARIES:
        assert not leaks(masked.encode(), canary)


def test_a_preview_cut_through_a_canary_shows_no_part_of_it() -> None:
    redactor, canary = next((r, c) for r, c in _pairs() if len(c.reveal()) >= 60)
    for place in range(80):
        text = "x" * place + " " + canary.reveal() + " tail" * 100
        preview = redactor.preview(text, 60)
        assert preview.truncated
        assert canary.reveal()[:8] not in preview.text
        assert len(preview.text.encode()) <= 60
