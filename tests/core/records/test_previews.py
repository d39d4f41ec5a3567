"""The fast path of previews gives the same result as the slow one."""

from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.records.redaction.shape_examples import EXAMPLES

from subluminal.config.settings import RedactPattern
from subluminal.core.records.previews import Previewer
from subluminal.core.records.redaction import matching
from subluminal.core.records.redaction.redactor import Redactor
from subluminal.secrets.value import SecretValue

VALUES = [SecretValue("pin", "t0ken-Value-123")]
PATTERNS = [RedactPattern(name="ticket", pattern="TKT-[0-9]{4}")]
BITS = ['{"a":1}', "t0ken-Value-123", "TKT-1234", "password=", "null", '"', "\\", "\n", "ä", "\x7f"]
texts = st.lists(st.sampled_from(BITS) | st.text(max_size=9), max_size=6).map("".join)


def previewer(mode: str = "metadata", max_bytes: int = 40) -> Previewer:
    redactor = Redactor(VALUES, patterns=PATTERNS)
    return Previewer(redactor, record_mode=mode, max_bytes=max_bytes, full_bytes=200)


@given(texts, st.sampled_from(["off", "metadata", "full"]))
def test_the_short_way_shows_what_the_long_one_does(text: str, mode: str) -> None:
    made, data = previewer(mode), text.encode("utf-8", "surrogatepass")
    digest = sha256(data).hexdigest().encode()
    assert made.args(data, digest) == made._preview(data, b"args_preview", digest)
    assert made.result(data) == made._preview(data, b"result_preview", None)


def test_a_preview_is_members_and_the_text_is_the_last_of_them() -> None:
    preview_json, text_json = previewer().args(b'{"a":"TKT-1234"}', b"0" * 64)
    read = msgspec.json.decode(b'{"truncated":' + preview_json + text_json + b"}")
    assert list(read) == ["truncated", "redaction_flags", "hash", "args_preview"]
    assert read["args_preview"] == '{"a":"[REDACTED:ticket]"}'
    assert read["hash"] == sha256(read["args_preview"].encode()).hexdigest()


def test_what_is_too_large_to_inspect_is_said_to_be_cut() -> None:
    preview_json, text_json = previewer().result(None)
    read = msgspec.json.decode(b'{"truncated":' + preview_json + text_json + b"}")
    assert read["truncated"] is True
    assert read["hash"] == sha256(read["result_preview"].encode()).hexdigest()


@pytest.mark.parametrize("set_bytes", [20, matching.MAX_SET_BYTES])
@pytest.mark.parametrize("patterns", [[], PATTERNS])
def test_nothing_that_is_to_be_masked_gets_past_the_screen(
    monkeypatch: pytest.MonkeyPatch, patterns: list[RedactPattern], set_bytes: int
) -> None:
    monkeypatch.setattr(matching, "MAX_SET_BYTES", set_bytes)
    redactor = Redactor(VALUES, patterns=patterns)
    secrets = [text for hits, _ in EXAMPLES.values() for text in hits]
    for text in [*secrets, "t0ken-Value-123", *(["TKT-1234"] if patterns else [])]:
        for _ in range(2):  # the first one compiles
            assert redactor.screen(text.encode()), text
    assert not redactor.screen(b'{"limit":25,"path":"/srv/data"}')


def test_with_nothing_to_look_for_the_screen_says_nothing() -> None:
    assert not Redactor(shapes=()).screen(b"t0ken-Value-123")


@given(
    st.sampled_from(["off", "metadata", "full"]),
    st.integers(-40, 40),
    texts,
    st.sampled_from([b"x", "ä".encode(), b"t0ken-Value-123", b"\xff"]),
)
def test_what_lies_behind_the_part_that_is_looked_at_changes_nothing(
    mode: str, around: int, text: str, filler: bytes
) -> None:
    made = previewer(mode)
    bound = made.looked_at_bytes
    data = text.encode("utf-8", "surrogatepass")
    data += filler * ((bound + around) // len(filler))
    assert made.result(data[:bound]) == made.result(data)
