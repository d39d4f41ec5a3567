"""Slots are evicted in the order of their last stamps, whichever process stamped them."""

import random

from subluminal.state.eviction import Eviction
from subluminal.state.layout import PAGE_WORDS, Shape, place_tables

SHAPE = Shape(32, capacity=50, buckets=64, inline_ints=2, max_ints=2, evicts=True)
(PLACE,), _, WORDS = place_tables((SHAPE,), PAGE_WORDS)


def test_two_processes_agree_on_the_oldest_slot():
    words = memoryview(bytearray(WORDS * 8)).cast("q")
    processes = [Eviction(words, PLACE), Eviction(words, PLACE)]
    chance, order = random.Random(1), list(range(SHAPE.capacity))
    for slot in order:
        processes[0].stamp(slot)
    for _ in range(2_000):
        process = chance.choice(processes)
        if chance.random() < 0.5:
            slot = chance.choice(order)
        else:
            slot = process.oldest()
            assert slot == order[0]
        process.stamp(slot)
        order.remove(slot)
        order.append(slot)


def test_no_stamp_is_given_twice():
    words = memoryview(bytearray(WORDS * 8)).cast("q")
    eviction = Eviction(words, PLACE)
    for slot in (3, 3, 4, 3):
        eviction.stamp(slot)
    assert words[PLACE.stamps + 3] == 4
    assert words[PLACE.stamps + 4] == 3
