"""The level of a run in its state: exact, never rising by itself, whatever is killed or damaged."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.requirements import requirement
from tests.state.mortal import Killed, Mortal, MortalBytes

from subluminal.contracts.counters import TAINT_KEY, CellKind
from subluminal.contracts.vocabulary import TAINT_RANK, Taint
from subluminal.state import layout
from subluminal.state.run_state import RunState, Total
from subluminal.state.storage import open_or_create
from subluminal.state.taint import DAMAGED, MARKED, TaintState, TaintWord

SYSTEM, TRUSTED, UNTRUSTED = range(3)
WHY = ("rule", "web", "fetch-server", "fetch", "")


@pytest.fixture
def state(tmp_path):
    with RunState.open(str(tmp_path), "run") as opened:
        yield opened


def update(rank):
    return (CellKind.TAINT, TAINT_KEY, (rank,))


def test_a_new_run_is_system(state):
    assert state.taint_state() == TaintState(Taint.SYSTEM, 0, ())
    assert state.counters.read(CellKind.TAINT, TAINT_KEY) == ()


def test_lowering_is_a_write_of_counters(state):
    with state.locked():
        state.take_seq()
        state.taint.note(TRUSTED, WHY)
        state.counters.write([update(TRUSTED)])
    assert state.taint_state() == TaintState(Taint.TRUSTED, 1, WHY)
    assert state.counters.read(CellKind.TAINT, TAINT_KEY) == (TRUSTED,)


@pytest.mark.parametrize("others", [[], [(CellKind.PAIR, b"k" * 16, (1, 2))]])
def test_the_lowest_of_a_batch_holds(state, others):
    with state.locked():
        state.counters.write([update(TRUSTED), *others, update(UNTRUSTED), update(TRUSTED)])
    assert state.taint.rank() == UNTRUSTED


@requirement("taint:never-rises")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["lower", "mark", "start", "put"]), st.integers(0, 2))))
def test_only_a_person_raises_the_level(tmp_path_factory, steps):
    level, is_set = SYSTEM, False
    with RunState.open(str(tmp_path_factory.mktemp("state")), "run") as state:
        for step, rank in steps:
            with state.locked():
                if step == "lower":
                    state.counters.write([update(rank)])
                    level = max(level, rank)
                elif step == "mark":
                    state.lower_unlocked(rank)
                    level = max(level, rank)
                elif step == "start":
                    state.taint.start(rank, WHY)
                    level = level if is_set else max(level, rank)
                else:
                    state.taint.put(rank)
                    level, is_set = rank, True
            assert state.taint.rank() == level


@requirement("taint:never-rises")
def test_a_kill_at_any_store_never_raises_the_level(tmp_path):
    """What a killed process leaves is the level before or after, and the reason of one of them."""
    for stores, before, after in itertools.product(range(6), range(3), range(3)):
        run_id = f"run-{stores}-{before}-{after}"
        with RunState.open(str(tmp_path), run_id) as state, state.locked():
            state.taint.note(before, ("old", "", "", "", "old"))
            state.taint.lower(before)
            file = open_or_create(str(tmp_path), run_id)
            life = {"stores": stores}
            file.words, file.data = Mortal(file.words, life), MortalBytes(file.data, life)
            dying = TaintWord(file)
            try:
                if after > before:
                    dying.note(after, WHY)
                dying.lower(after)
                done = True
            except Killed:
                done = False
            held = state.taint.state()
            assert TAINT_RANK[held.level] in (before, max(before, after))
            if done:
                assert TAINT_RANK[held.level] == max(before, after)
            assert held.source in ((), ("old", "", "", "", "old"), WHY)
            state.taint.lower(after)
            assert state.taint.rank() == max(before, after)
            file.close()


def test_a_level_is_lowered_without_the_lock(state):
    """The mark tells since which call; what is as low already changes nothing."""
    with state.locked():
        state.take_seq()
        state.taint.note(TRUSTED, WHY)
        state.taint.lower(TRUSTED)
    assert state.lower_unlocked(TRUSTED) == TRUSTED
    assert state.taint_state() == TaintState(Taint.TRUSTED, 1, WHY)
    assert state.lower_unlocked(UNTRUSTED) == TRUSTED
    why = ("rule", "", "", "", MARKED)
    assert state.taint_state() == TaintState(Taint.UNTRUSTED, 1, why)
    assert state.counters.read(CellKind.TAINT, TAINT_KEY) == (UNTRUSTED,)
    with state.locked():
        state.counters.write([update(UNTRUSTED)])
    assert state.taint_state().source == why
    with state.locked():
        state.taint.put(SYSTEM)
    assert state.taint_state() == TaintState(Taint.SYSTEM, 1, ("command",))


def test_a_mark_outlives_a_writer_that_did_not_see_it(state):
    """A holder of the lock that stores its word after the mark was set cannot undo it."""
    with state.locked():
        late = state.taint.lowered(TRUSTED)
        state.lower_unlocked(UNTRUSTED)
        state._words[layout.W_TAINT] = late
    assert state.taint.rank() == UNTRUSTED


@pytest.mark.parametrize("new", range(3))
@pytest.mark.parametrize("marked", [TRUSTED, UNTRUSTED])
def test_a_kill_while_a_person_sets_the_level_leaves_what_was_chosen_or_the_lowest(
    tmp_path, marked, new
):
    for stores in range(5):
        with RunState.open(str(tmp_path), f"run-{stores}") as state, state.locked():
            state.lower_unlocked(marked)
            file = open_or_create(str(tmp_path), f"run-{stores}")
            file.words = Mortal(file.words, {"stores": stores})
            try:
                TaintWord(file).put(new)
                assert state.taint.rank() == new
            except Killed:
                assert state.taint.rank() in (marked, UNTRUSTED)
            file.close()


def test_a_damaged_word_is_mended_once(state):
    with state.locked():
        state.take_seq()
        assert not state.taint.is_damaged()
        state._words[layout.W_TAINT] = 77
        assert state.taint.is_damaged()
        state.taint.mend()
        assert not state.taint.is_damaged()
    assert state.taint_state() == TaintState(Taint.UNTRUSTED, 1, ("rule", "", "", "", DAMAGED))


def test_a_number_that_the_run_has_not_reached_is_not_told(state):
    with state.locked():
        state._words[layout.W_TAINT] = 9 << 8 | UNTRUSTED + 1
    assert state.taint_state().seq == 0
    with state.locked():
        state._words[layout.W_TAINT] = 0
        state._words[layout.W_TAINT_MARKS] = 99
    assert state.taint_state() == TaintState(Taint.TRUSTED, 0, ("rule", "", "", "", MARKED))


@pytest.mark.parametrize("word", [-1, -(2**63), 2**63 - 1, 4, 15, 16, 255, 1 << 40])
def test_a_word_that_nobody_wrote_is_the_lowest_level(state, word):
    with state.locked():
        state._words[layout.W_TAINT] = word
    assert state.taint.rank() == UNTRUSTED
    assert state.taint_state().level is Taint.UNTRUSTED
    assert state.taint_state().seq >= 0
    with state.locked():
        state.counters.write([update(TRUSTED)])
    assert state.taint.rank() == UNTRUSTED


@pytest.mark.parametrize("word", [-1, 1 << 62, 5 << 32 | 7, layout.TAINT_SOURCE_BYTES + 1 << 32])
def test_a_damaged_reason_is_no_reason(state, word):
    with state.locked():
        state.taint.note(UNTRUSTED, WHY)
        state.taint.lower(UNTRUSTED)
        state._words[layout.W_TAINT_SOURCES + 1] = word
    assert state.taint_state() == TaintState(Taint.UNTRUSTED, 0, ())


def test_long_reasons_are_cut(state):
    with state.locked():
        state.taint.note(UNTRUSTED, ("ü" * 1_000, "x\0y"))
        state.taint.note(TRUSTED, ("\0",))
        state.taint.lower(UNTRUSTED)
    (kept,) = state.taint_state().source
    assert kept == "ü" * (layout.TAINT_SOURCE_BYTES // 2)


def test_the_words_of_the_level_are_its_own():
    """Two reasons fit between the last text of the header and its end."""
    last = layout.SERVER_FAILURE_TEXT + layout.SERVER_FAILURE_BYTES // layout.WORD_BYTES
    assert last == layout.TAINT_SOURCES
    words = 2 * layout.TAINT_SOURCE_BYTES // layout.WORD_BYTES
    assert layout.TAINT_SOURCES + words <= layout.HEADER_WORDS
    assert layout.W_TAINT_SOURCES + 2 <= layout.W_TABLES
    assert layout.W_TOTALS + len(Total) <= layout.W_TAINT_MARKS
    assert layout.W_TAINT_MARKS + 2 <= layout.W_WORKED
