"""No two fields overlap, and every word is aligned, so that one store writes it."""

from itertools import pairwise

from subluminal.state import layout


def test_fields_of_the_header_do_not_overlap():
    tables = [word for place in layout.TABLES for word in (place.used, place.backed, place.clock)]
    singles = [value for name, value in vars(layout).items() if name.startswith("W_")]
    starts = {layout.W_TABLES, layout.W_TERMINATION, layout.W_TOTALS}
    totals = list(range(layout.W_TOTALS, layout.W_TOTALS + 4))
    words = [word for word in singles if word not in starts] + tables + totals
    assert len(words) == len(set(words))
    assert max(words) < layout.W_TERMINATION
    end = layout.W_TERMINATION + layout.TERMINATION_BYTES // layout.WORD_BYTES
    assert end <= layout.HEADER_WORDS


def test_regions_follow_each_other():
    regions = [(0, layout.HEADER_WORDS), (layout.HEADER_WORDS, layout.SHIMS_END)]
    for place in layout.TABLES:
        shape = place.shape
        regions += [
            (place.heads, place.heads + shape.buckets),
            (place.slots, place.slots + shape.capacity * shape.slot_words),
        ]
        if shape.evicts:
            regions.append((place.stamps, place.stamps + shape.capacity))
        if shape.spill_words:
            regions.append((place.spill, place.spill + shape.capacity * shape.spill_words))
    regions.sort()
    assert all(end <= start for (_, end), (start, _) in pairwise(regions))
    assert regions[-1][1] <= layout.FILE_WORDS
    slots = min(place.slots for place in layout.TABLES)
    assert slots == layout.ALWAYS_BACKED_WORDS


def test_buckets_can_be_chosen_by_two_bytes():
    for place in layout.TABLES:
        buckets = place.shape.buckets
        assert buckets & (buckets - 1) == 0
        assert buckets <= 65_536


def test_slots_are_whole_cache_lines():
    assert layout.PAIR.slot_words * layout.WORD_BYTES == 64
    assert layout.WINDOW.slot_words * layout.WORD_BYTES == 256
    assert layout.RECENT.slot_words * layout.WORD_BYTES == 256
