"""The chain holds without its preview texts, and changes with anything else."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.journal.lines import decision_line, end_line, start_line, templates

from subluminal.contracts.codec import decode_event
from subluminal.contracts.identity import Workload
from subluminal.journal.chain import chained_form, link, preview_text_json, seed, with_text

PREV = seed("shim")
texts = st.text(st.characters(exclude_categories=["Cs"]))
tricky = st.one_of(
    texts,
    st.text(st.sampled_from('\\"}{,:args_previewhash')),
    st.just('x","args_preview":"y"}}}'),
    st.just("\\"),
)


def without_text(line: bytes) -> dict[str, object]:
    """Decodes an event and removes its preview text."""
    event: dict[str, dict[str, dict[str, str]]] = msgspec.json.decode(line)
    event["call"].get("preview", {}).pop("args_preview", None)
    event.get("preview", {}).pop("result_preview", None)
    return event


@given(text=tricky)
def test_start_and_end_lose_exactly_their_preview_text(text: str) -> None:
    for line in (
        start_line(templates(), 1, PREV, text=text),
        end_line(templates(), 1, PREV, text=text),
    ):
        form = chained_form(line)
        assert msgspec.json.decode(form) == without_text(line)
        assert chained_form(form) == form
        assert decode_event(form) is not None
        found = preview_text_json(line)
        assert found is not None
        assert msgspec.json.decode(found) == text


@given(labels=st.dictionaries(tricky, tricky), text=st.one_of(st.none(), tricky))
def test_labels_that_look_like_a_preview_stay_chained(
    labels: dict[str, str], text: str | None
) -> None:
    """An attacker who chooses labels must not be able to take the call out of the chain."""
    forged = {**labels, "hash": "0" * 64, "args_preview": "x"}
    made = templates(workload=Workload(labels=forged))
    line = start_line(made, 1, PREV, text=text)
    assert msgspec.json.decode(chained_form(line)) == without_text(line)


def test_a_text_without_its_hash_is_chained() -> None:
    line = start_line(templates(), 1, PREV, text=None)
    bare = line.replace(b'"truncated":false', b'"truncated":false,"args_preview":"secret"')
    assert chained_form(bare) == bare


def test_a_decision_is_chained_whole() -> None:
    line = decision_line(templates(), 1, PREV)
    assert chained_form(line) is line


def test_links_depend_on_all_that_came_before() -> None:
    assert seed("a") != seed("b")
    assert link(PREV, b"x") != link(link(PREV, b"x"), b"x")
    assert len(link(PREV, b"x")) == 64


@given(text=tricky)
def test_a_dropped_text_can_be_put_back(text: str) -> None:
    for line in (
        start_line(templates(), 1, PREV, text=text),
        end_line(templates(), 1, PREV, text=text),
    ):
        assert with_text(chained_form(line), msgspec.json.encode(text)) == line
