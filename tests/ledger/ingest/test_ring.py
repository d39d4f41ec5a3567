"""The ring is bounded: previews go first, decisions never, and what was dropped is counted."""

import msgspec
from tests.ledger.home import Home
from tests.requirements import requirement

from subluminal.journal.chain import preview_text_json
from subluminal.ledger.ingest.ring import Parcel, Ring


@requirement("001-11.4:drop-previews")
def test_previews_go_at_half_and_producers_wait_at_full(home: Home) -> None:
    producer = home.producer()
    for _ in range(10):
        producer.call()
    lines = home.lines()
    size = sum(map(len, lines))
    ring = Ring(max_bytes=2 * size)
    told: list[bool] = []
    parcels = [Parcel(list(lines), "t", 0, told.append) for _ in range(5)]
    assert [ring.put(parcel) for parcel in parcels] == [True, True, True, False, False]
    assert ring.is_full
    kept = [[preview_text_json(line) is not None for line in parcel.lines] for parcel in parcels]
    assert any(kept[0])
    assert not any(kept[1])
    assert len(parcels[1].lines) == len(lines)
    assert {msgspec.json.decode(line)["type"] for line in parcels[1].lines} == {
        "tool_call_start",
        "tool_call_decision",
        "tool_call_end",
    }
    assert ring.take_dropped() == 40
    assert ring.take_dropped() == 0
    taken = list(iter(ring.take, None))
    assert taken == parcels[:3]
    assert ring.is_full, "until they are stored"
    ring.release(taken, is_stored=True)
    assert ring.bytes == 0
    assert ring.put(parcels[3])
    ring.close()
    assert told == [True, True, True, False]
    assert not ring.put(parcels[4])
