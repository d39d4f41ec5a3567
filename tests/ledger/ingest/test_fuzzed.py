"""Events with anything in any field: each is stored or quarantined, and the ledger stays provable."""

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contracts import samples
from tests.ledger.home import Home

from subluminal.journal.chain import chained_form, link, seed
from subluminal.ledger.query import approvals, calls, hints, policies, runs, tools
from subluminal.ledger.query.events import decode_stored, read_events
from subluminal.ledger.query.questions import CallFilter, Paging, RunFilter

LINES = 120
ODD = [
    *(None, True, -1, 2**63, 2**64, 10**30, 1e300, "", "\0", "\u202e", [], {}, [[]]),
    *("9999-99-99T00:00:00Z", "0001-01-01T00:00:00.000Z", {"n": 10**200}, {"a": {"b": 1}}),
]
TAILS = [
    b',"u":"\xff\xfe"}',
    b',"u":' + b"[" * 900 + b"]" * 900 + b"}",
    b',"type":"run_end"}',
    b',"u":' + b"9" * 5_000 + b"}",
    b',"run_id":"twice"}',
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, member in pairs:
        yield (*path, key)
        if isinstance(member, dict | list):
            yield from places(member, (*path, key))


def changed(event: dict[str, Any], choose: random.Random) -> None:
    *path, last = choose.choice([path for path in places(event) if path[0] != "source"])
    inner: Any = event
    for key in path:
        inner = inner[key]
    if choose.random() < 0.25:
        del inner[last]
    else:
        inner[last] = copy.deepcopy(choose.choice(ODD))


def lines(choose: random.Random) -> Iterator[bytes]:
    """Lines of one chain, most of them damaged."""
    prev = seed("shim")
    for n in range(1, LINES + 1):
        event = copy.deepcopy(choose.choice(list(samples.EVENTS.values())))
        if "call" in event:
            event["call"]["call_id"] = f"c-{n}"
        event["source"] |= {"shim_id": "shim", "n": n, "prev": prev.decode()}
        for _ in range(choose.choice([0, 0, 1, 1, 2])):
            changed(event, choose)
        line = json.dumps(event, ensure_ascii=choose.random() < 0.5, separators=(",", ":")).encode()
        if choose.random() < 0.1:
            line = line[: choose.randrange(len(line))]
        elif choose.random() < 0.1:
            line = line[:-1] + choose.choice(TAILS)
        prev = link(prev, chained_form(line))
        yield line


@pytest.mark.parametrize("number", range(12))
def test_anything_in_any_field(home: Home, number: int) -> None:
    directory = Path(home.places.journal, "run")
    directory.mkdir(parents=True)
    written = b"".join(line + b"\n" for line in lines(random.Random(number)))
    (directory / "shim.jsonl").write_bytes(written)
    stored = home.ingest()
    ((damaged,),) = home.rows("SELECT ifnull(sum(lines), 0) FROM quarantine")
    assert stored + int(str(damaged)) == LINES
    findings = home.verify().findings
    assert [each for each in findings if "never reached the ledger" not in each.message] == []
    answered(home, stored)


def answered(home: Home, stored: int) -> None:
    """Every question is answered, and every stored event is text."""
    reader = home.reader()
    piece = read_events(reader, CallFilter(), 0)
    assert len(piece.events) == stored
    for each in piece.events:
        each.line.decode()
        decode_stored(each.line)
    for row in home.rows("SELECT call_id FROM tool_calls"):
        assert calls.show_call(reader, str(row[0])) is not None
    paging = Paging(limit=1_000)
    calls.find_calls(reader, CallFilter(), paging)
    runs.find_scores(reader, RunFilter(), paging)
    hints.find_hints(reader, None, paging)
    approvals.find_approvals(reader, paging, 0)
    tools.list_tools(reader)
    policies.list_policies(reader)
