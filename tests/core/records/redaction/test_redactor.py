"""Marks, names and flags; short values; user patterns; JSON that stays JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subluminal.config.settings import RedactPattern, RedactSettings
from subluminal.core.records.redaction.matching import MAX_HITS
from subluminal.core.records.redaction.redactor import Redactor, redactor_for
from subluminal.errors import SubluminalError
from subluminal.secrets.value import SecretValue

TOKEN = "t0ken-Value-123"


def only(*values: str) -> Redactor:
    return Redactor([SecretValue(f"s{i}", value) for i, value in enumerate(values)], shapes=())


def test_text_without_secrets_is_returned_as_it_is() -> None:
    text = "nothing here ä😀 \ud800"
    assert Redactor().redact(text) == (text, ())


def test_marks_name_the_secret_and_flags_are_sorted_and_unique() -> None:
    masked, flags = only(TOKEN, "another-one-9").redact(f"{TOKEN} another-one-9 {TOKEN}")
    assert masked == "[REDACTED:s0] [REDACTED:s1] [REDACTED:s0]"
    assert flags == ("s0", "s1")


def test_a_name_that_would_break_a_mark_is_made_safe() -> None:
    redactor = Redactor([SecretValue('my "key"\n', TOKEN)], shapes=())
    assert redactor.redact(TOKEN) == ("[REDACTED:my__key__]", ("my__key__",))


def test_a_binding_with_redact_false_is_exempt() -> None:
    redactor = Redactor([SecretValue("s", TOKEN, redact=False)], shapes=())
    assert redactor.redact(TOKEN) == (TOKEN, ())
    assert redactor.unmaskable == ()


def test_a_known_value_gives_its_name_where_a_shape_hits_too() -> None:
    value = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"
    masked, flags = Redactor([SecretValue("mine", value)]).redact(f"token={value}")
    assert masked == "token=[REDACTED:mine]"
    assert flags == ("github_token", "mine")


@pytest.mark.parametrize(
    ("value", "text", "masked"),
    [
        ("abc", "abc abc", "abc abc"),
        ("7421", "pin 7421, order 74210", "pin [REDACTED:s0], order 74210"),
        ("7421", "\\n7421\\n x7421", "\\n[REDACTED:s0]\\n x7421"),
        ("s3cr3", "s3cr3t is not s3cr3", "s3cr3t is not [REDACTED:s0]"),
        ("s3cr3t", "xs3cr3tx", "x[REDACTED:s0]x"),
    ],
    ids=["under 4: never", "4: alone", "after an escape", "5: alone", "6: anywhere"],
)
def test_short_values_are_masked_only_where_they_stand_alone(
    value: str, text: str, masked: str
) -> None:
    assert only(value).redact(text)[0] == masked


def test_values_too_short_to_mask_are_told() -> None:
    assert only("abc", TOKEN, "x").unmaskable == ("s0", "s2")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ('{"pin":12345678}', '{"pin":"[REDACTED:s0]"}'),
        ("[1,9912345678.5]", '[1,"[REDACTED:s0]"]'),
        ('{"12345678":"x"}', '{"[REDACTED:s0]":"x"}'),
        ("12345678", "[REDACTED:s0]"),
        ("[error] 12345678 {", "[error] [REDACTED:s0] {"),
    ],
)
def test_a_number_is_replaced_by_a_string_where_text_is_json(text: str, masked: str) -> None:
    assert only("12345678").redact(text)[0] == masked


def test_a_pattern_across_strings_leaves_the_structure() -> None:
    redactor = Redactor(shapes=(), patterns=[RedactPattern(name="all", pattern="secret.*end")])
    text = '{"a":"x secret","b":[1,null,"and"],"c":"the end."}'
    masked, _ = redactor.redact(text)
    mark = "[REDACTED:all]"
    assert masked == f'{{"a":"x {mark}","{mark}":["{mark}","{mark}","{mark}"],"{mark}":"{mark}."}}'


def test_half_escapes_are_never_left() -> None:
    redactor = Redactor(shapes=(), patterns=[RedactPattern(name="p", pattern=r"n[a-z0-9]+")])
    for text in (r'"\nabc"', r'"\\nabc"', r'"\u00ed1n0abc"', r'"x\\\nabc\\n"', r'"nn\ud83d\ude00"'):
        masked, flags = redactor.redact(text)
        assert flags == ("p",)
        json.loads(masked).encode()


def test_a_surrogate_pair_is_masked_whole_or_not_at_all() -> None:
    for pattern in (r"x\\ud83d", r"\\ude00x", r"d\\ude"):
        redactor = Redactor(shapes=(), patterns=[RedactPattern(name="p", pattern=pattern)])
        masked, flags = redactor.redact(r'"ax\ud83d\ude00xb"')
        assert flags == ("p",)
        json.loads(masked).encode()


def test_a_byte_of_a_character_is_never_left() -> None:
    # Latin-1 patterns see bytes; \xc3 is half of ä.
    redactor = only("ende\u00e4")
    assert redactor.redact("x ende\u00e4 y")[0] == "x [REDACTED:s0] y"


def test_user_patterns_mask_their_groups_and_are_checked() -> None:
    settings = RedactSettings(patterns=[RedactPattern(name="acme", pattern=r"acme:(ä+\d{3})")])
    masked, flags = redactor_for(settings).redact("x acme:ää123 y")
    assert (masked, flags) == ("x acme:[REDACTED:acme] y", ("acme",))
    for bad, why in (
        (r"(?=x)", "invalid perl operator"),
        ("a*", "matches empty text"),
        ("(", "missing"),
    ):
        with pytest.raises(SubluminalError, match=why):
            redactor_for(RedactSettings(patterns=[RedactPattern(name="bad", pattern=bad)]))


def test_a_built_in_shape_can_be_ignored() -> None:
    text = "password=hunter22"
    assert redactor_for(RedactSettings(ignore=["password"])).redact(text) == (text, ())


def test_a_text_with_too_many_hits_is_masked_whole() -> None:
    text = json.dumps([TOKEN] * (MAX_HITS + 1))
    masked, flags = only(TOKEN).redact(text)
    assert json.loads(masked) == "[REDACTED:too_many]"
    assert flags == ("too_many",)
    assert only(TOKEN).redact(f"{TOKEN} " * (MAX_HITS + 1))[0] == "[REDACTED:too_many]"


def test_redacting_twice_changes_nothing() -> None:
    redactor = Redactor([SecretValue("db", TOKEN)])
    once, _ = redactor.redact(f"password={TOKEN} Authorization: Bearer {TOKEN}{TOKEN}")
    assert redactor.redact(once) == (once, ())


def test_a_mark_does_not_hide_what_follows_it() -> None:
    masked, flags = Redactor().redact('password="x[REDACTED:]hunter22"')
    assert "hunter22" not in masked
    assert flags == ("password",)


def test_preview_says_whether_it_was_cut_and_never_cuts_a_character() -> None:
    redactor = only(TOKEN)
    assert redactor.preview("short", 10) == ("short", False, ())
    assert redactor.preview("ääää", 5) == ("ää", True, ())
    assert redactor.preview(f"x {TOKEN}", 40) == ("x [REDACTED:s0]", False, ("s0",))
    assert redactor.preview("a" * 9 + TOKEN, 10).text == "a" * 9 + "["


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(
    json_values,
    st.text(min_size=6, max_size=24).filter(lambda text: text.isprintable()),
    st.booleans(),
)
def test_json_stays_json_whatever_the_secret(value: object, secret: str, ascii_only: bool) -> None:
    document = {"v": value, "s": f"{value}{secret}{value}", secret: [secret, json.dumps(secret)]}
    text = json.dumps(document, ensure_ascii=ascii_only)
    masked, flags = only(secret).redact(text)
    assert flags == ("s0",)
    assert secret not in json.dumps(json.loads(masked), ensure_ascii=False).replace(
        "[REDACTED:s0]", ""
    )


@given(json_values, st.sampled_from(["[0-9]+", '"[^a]', r"\\.", "u[0-9a-f]", ",", r"\W{2}", "e"]))
def test_json_stays_json_whatever_the_pattern(value: object, pattern: str) -> None:
    redactor = Redactor(shapes=(), patterns=[RedactPattern(name="p", pattern=pattern)])
    for text in (json.dumps([value]), json.dumps({"k": value}, ensure_ascii=False)):
        json.loads(redactor.redact(text)[0])


def test_masks_that_shrink_a_text_do_not_show_what_was_not_searched_to_its_end() -> None:
    """A secret may continue after the window, so nothing near the window's end is shown."""
    redactor = only("A" * 3000, TOKEN)
    for pad in range(0, 60, 7):
        text = "A" * 3000 + "x" * (100 + redactor.hold_back_bytes - 3000 - pad) + TOKEN * 3
        preview = redactor.preview(text, 100)
        assert preview.truncated
        assert TOKEN[:4] not in preview.text


@given(st.text(), st.integers(0, 12))
def test_a_preview_is_a_beginning_of_the_text(text: str, size: int) -> None:
    preview = Redactor(shapes=()).preview(text, size)
    assert text.startswith(preview.text)
    assert len(preview.text.encode("utf-8", "surrogatepass")) <= size
    assert preview.truncated == (len(text.encode("utf-8", "surrogatepass")) > size)
