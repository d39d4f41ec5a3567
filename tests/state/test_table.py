"""The table survives a kill at every store, keeps exact LRU order, and notices damage."""

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.counters_suite import RECENT, key_of
from tests.state.mortal import Killed, Mortal, MortalBytes

from subluminal.contracts.counters import CountersFull
from subluminal.state.errors import StateUnusable
from subluminal.state.layout import PAGE_WORDS, WORD_BYTES, Shape, place_tables
from subluminal.state.storage import StateFile, open_or_create
from subluminal.state.table import Table

SMALL = Shape(32, capacity=4, buckets=2, inline_ints=2, max_ints=6, evicts=True)
(PLACE,), _, WORDS = place_tables((SMALL,), PAGE_WORDS)
KEYS = [key_of(RECENT, n) for n in range(8)]


class Memory:
    """A state file in plain memory, shared by the tables made on it."""

    def __init__(self):
        self.path = "memory"
        self.data = bytearray(WORDS * WORD_BYTES)
        self.words = memoryview(self.data).cast("q")

    def back(self, start, words):
        """Does nothing: memory needs no disk blocks."""

    def table(self, stores=10**9):
        life = {"stores": stores}
        file = SimpleNamespace(
            path=self.path,
            words=Mortal(self.words, life),
            data=MortalBytes(self.data, life),
            back=self.back,
        )
        return Table(file, PLACE)


def read(memory, key):
    return Table(memory, PLACE).read(key)


def put(table, key, cell):
    table.write(key, table.encode(key, cell))


def cells(memory):
    """Returns every key that can be found, with its cell."""
    return {key: read(memory, key) for key in KEYS if Table(memory, PLACE).find(key)}


def prepared(before):
    memory = Memory()
    for key, cell in before:
        put(memory.table(), key, cell)
    return memory


FULL = [(KEYS[n], (n, n)) for n in range(4)]
SCENES = {
    "first key": ([], KEYS[0], (1, 2)),
    "second buffer": ([(KEYS[0], (1, 2))], KEYS[0], (3,)),
    "first spill": ([(KEYS[0], (1, 2))], KEYS[0], (3, 4, 5, 6)),
    "back from spill": ([(KEYS[0], (1, 2, 3, 4))], KEYS[0], (5,)),
    "eviction": (FULL, KEYS[6], (6, 6)),
    "eviction of a chain's head": ([*FULL[1:], FULL[0]], KEYS[6], (6, 6)),
}


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_a_kill_at_any_store_leaves_the_old_cell_or_the_new(scene):
    before, key, cell = SCENES[scene]
    outcomes = []
    for stores in range(100):
        memory = prepared(before)
        old = cells(memory)
        try:
            put(memory.table(stores), key, cell)
            done = True
        except Killed:
            done = False
        after = cells(memory)
        outcomes.append(after.get(key, ()))
        assert outcomes[-1] in (old.get(key, ()), cell, ())
        changed = {k for k in old if k != key and after.get(k) != old[k]}
        evicted = {before[0][0]} if len(before) == 4 else set()
        assert changed <= evicted
        survives_more_work(memory)
        if done:
            break
    assert outcomes[-1] == cell
    assert len(outcomes) > 2
    if key in dict(before):
        assert () not in outcomes


def survives_more_work(memory):
    """Checks that the next process can use every slot after a kill."""
    for round_ in range(3):
        for number, key in enumerate(KEYS):
            put(memory.table(), key, (round_, number))
            assert read(memory, key) == (round_, number)
    newest = dict(zip(KEYS[-4:], [(2, n) for n in range(4, 8)], strict=True))
    assert cells(memory) == newest


@settings(max_examples=300, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(KEYS), st.lists(st.integers(0, 9), max_size=6))
    )
)
def test_three_processes_evict_in_exact_order_of_writing(steps):
    memory, model = Memory(), {}
    tables = [Table(memory, PLACE) for _ in range(3)]
    for who, key, cell in steps:
        put(tables[who], key, tuple(cell))
        model.pop(key, None)
        model[key] = tuple(cell)
        if len(model) > SMALL.capacity:
            del model[next(iter(model))]
        assert cells(memory) == model


@pytest.mark.parametrize("value", [5, -1, 2**62])
def test_a_link_that_leads_nowhere_is_damage(value):
    memory = prepared(FULL)
    for head in range(SMALL.buckets):
        memory.words[PLACE.heads + head] = value
    with pytest.raises(StateUnusable, match="contradict"):
        read(memory, KEYS[0])


def test_a_chain_that_goes_round_is_damage():
    memory = prepared(FULL)
    for slot in range(SMALL.capacity):
        memory.words[PLACE.slots + slot * SMALL.slot_words + 1] = slot + 1
    with pytest.raises(StateUnusable, match="contradict"):
        read(memory, KEYS[7])
    for head in range(SMALL.buckets):
        memory.words[PLACE.heads + head] = 2
    with pytest.raises(StateUnusable, match="contradict"):
        put(memory.table(), KEYS[7], ())


def test_an_eviction_notices_a_chain_that_goes_round():
    memory = prepared(FULL)
    bucket = KEYS[0][0] & 1
    new = bytes([KEYS[0][0] ^ 1]) * 32
    memory.words[PLACE.heads + bucket] = 2
    memory.words[PLACE.heads + 1 - bucket] = 0
    memory.words[PLACE.slots + SMALL.slot_words + 1] = 2
    with pytest.raises(StateUnusable, match="contradict"):
        put(memory.table(), new, ())


def test_a_table_that_does_not_evict_takes_no_more_than_it_holds():
    (place,), _, _ = place_tables((SMALL._replace(evicts=False),), PAGE_WORDS)
    table = Table(Memory(), place)
    for key in KEYS[:4]:
        put(table, key, (1,))
    with pytest.raises(CountersFull, match="4 counters of this kind"):
        put(table, KEYS[4], (1,))


@pytest.mark.parametrize("commit", [100 << 1, -1])
def test_a_commit_word_that_no_writer_leaves_is_damage(commit):
    memory = prepared(FULL[:1])
    memory.words[PLACE.slots] = commit
    with pytest.raises(StateUnusable, match="contradict"):
        read(memory, KEYS[0])


def test_slots_have_disk_blocks_before_they_are_written(tmp_path, monkeypatch):
    """A store into a hole of a full disk would be a SIGBUS; it has to be an error."""
    file = open_or_create(str(tmp_path), "run")
    table = Table(file, PLACE)
    monkeypatch.setattr("subluminal.state.storage.allocate", refuse_blocks)
    with pytest.raises(StateUnusable, match="no space left"):
        put(table, KEYS[0], (1,))
    with pytest.raises(StateUnusable, match="no space left"):
        table.make_room(1)
    monkeypatch.undo()
    put(table, KEYS[0], (1,))
    monkeypatch.setattr("subluminal.state.storage.allocate", refuse_blocks)
    put(table, KEYS[0], (2, 3))
    with pytest.raises(StateUnusable, match="no space left"):
        put(table, KEYS[0], (1, 2, 3))
    assert read(file, KEYS[0]) == (2, 3)
    file.close()
    StateFile(file.path).close()


def refuse_blocks(fd, offset, length):
    raise OSError(28, "No space left on device")


@settings(max_examples=500, deadline=None)
@given(
    turns=st.lists(
        st.tuples(
            st.integers(0, 1),
            st.lists(st.sampled_from(KEYS), min_size=1, max_size=5),
            st.lists(st.sampled_from(KEYS), max_size=5),
        )
    )
)
def test_a_key_that_read_did_not_find_is_inserted_where_it_is_found(turns):
    """Two processes take turns: each reads some keys, then writes some of them as new ones."""
    memory, model = Memory(), {}
    notes = [{}, {}]
    tables = [Table(memory, PLACE, absent) for absent in notes]
    for number, (who, reads, writes) in enumerate(turns):
        table, absent = tables[who], notes[who]
        absent.clear()
        for key in reads:
            assert table.read(key) == model.get(key, ())
            assert (key in absent) == (key not in model)
        for key in [*reads, *writes]:
            image = table.encode(key, (number,))
            if key in absent:
                table.insert(absent.pop(key), image)
            else:
                table.write(key, image)
            model.pop(key, None)
            model[key] = (number,)
            if len(model) > SMALL.capacity:
                del model[next(iter(model))]
            assert cells(memory) == model
