"""Events of newer versions are stored whole and shown (Pack 0.1 and 0.2); never lost, never fatal."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.contracts import samples
from tests.ledger.events import Producer
from tests.ledger.home import Home

from subluminal.contracts.identity import Source
from subluminal.journal.chain import chained_form
from subluminal.ledger.query.events import read_events
from subluminal.ledger.query.questions import CallFilter


def journal(producer: Producer, event: dict[str, Any]) -> bytes:
    """Journals any event, with the producer's place in the chain."""
    source = Source(
        host_id="h",
        proc_id="p",
        shim_id=producer.shim_id,
        n=producer.journal.n,
        prev=producer.journal.prev.decode(),
    )
    line = msgspec.json.encode({**event, "source": source})
    producer.journal.add(line)
    producer.journal.flush()
    return line


def newer(kind: str, **changes: Any) -> dict[str, Any]:
    """A sample event as a later MINOR version may write it: new words, new fields at any depth."""

    def grown(value: Any) -> Any:
        if isinstance(value, dict):
            return {**{key: grown(each) for key, each in value.items()}, "added": {"x": [1]}}
        return value

    event: dict[str, Any] = grown(samples.EVENTS[kind])
    return {**event, "v": "0.9.0", "client": "newcomer", "env": "orbit", **changes}


def stored(home: Home) -> list[bytes]:
    return [each.line for each in read_events(home.reader(), CallFilter(), 0).events]


@pytest.mark.parametrize("kind", samples.EVENTS)
def test_every_event_of_a_newer_minor_version_is_stored_whole(home: Home, kind: str) -> None:
    producer = home.producer()
    line = journal(producer, newer(kind))
    producer.call()
    assert home.ingest() == 4
    assert home.rows("SELECT count(*) FROM quarantine") == [(0,)]
    assert chained_form(stored(home)[0]) == chained_form(line)
    assert home.rows("SELECT client, env FROM runs WHERE run_id = ?", newer(kind)["run_id"]) == [
        ("newcomer", "orbit")
    ]
    assert home.verify().findings == []


def test_new_words_come_out_as_they_are(home: Home) -> None:
    producer = home.producer()
    call, decided, ended = (newer(f"tool_call_{each}") for each in ("start", "decision", "end"))
    call["call"]["transport"] = "telepathy"
    decided["decision"] |= {
        "action": "PONDER",
        "severity": "grave",
        "hint": {"hint_text": "wait", "hint_kind": "ZEN", "more": 1},
    }
    ended |= {"status": "DREAMT", "error": {"class": "nightmare", "message": "m"}}
    for each in (call, decided, ended):
        journal(producer, each)
    assert home.ingest() == 3
    assert home.rows(
        "SELECT decision, severity, status, error_class, transport FROM tool_calls"
    ) == [("PONDER", "grave", "DREAMT", "nightmare", "telepathy")]
    assert home.rows("SELECT hint_text, hint_kind FROM hints") == [("wait", "ZEN")]
    assert home.verify().findings == []


def test_a_known_event_that_lacks_its_fields_is_still_damaged(home: Home) -> None:
    producer = home.producer()
    journal(producer, {**samples.EVENTS["run_start"], "run": {"started_at": 5}})
    assert home.ingest() == 0
    assert home.rows("SELECT lines FROM quarantine") == [(1,)]


def test_a_newer_major_version_is_kept_and_counted(home: Home) -> None:
    """Its fields may mean something else, so no row is derived from them."""
    producer = home.producer()
    lines = [
        journal(producer, {**samples.EVENTS["tool_call_start"], "v": "1.0.0"}),
        journal(producer, {**samples.EVENTS["run_start"], "v": "2.1.0", "run": ["anew"]}),
        journal(producer, {**samples.ENVELOPE, "v": "1.0.0", "type": "mood", "call": [1]}),
    ]
    producer.call()
    assert home.ingest() == 6
    assert stored(home)[:3] == lines
    assert home.rows("SELECT count(*) FROM tool_calls") == [(1,)]
    assert home.rows("SELECT count(*) FROM quarantine") == [(0,)]
    assert home.rows("SELECT value FROM counters WHERE name = 'newer_events'") == [(3,)]
    assert home.verify().findings == []


def test_the_stream_of_a_filter_passes_them_too(home: Home) -> None:
    producer = home.producer()
    odd = {**samples.ENVELOPE, "type": "mood", "call": [1], "decision": 7, "status": {}}
    journal(producer, odd)
    producer.call()
    home.ingest()
    found = read_events(home.reader(), CallFilter(run=odd["run_id"]), 0).events
    assert [json.loads(each.line)["type"] for each in found] == ["mood"]


def test_the_commands_show_them(sub: Callable[..., Any], home: Home, monkeypatch: Any) -> None:
    monkeypatch.setenv("SUB_HOME", home.places.home)
    monkeypatch.setenv("SUB_RUNTIME_DIR", home.places.runtime_dir)
    producer = home.producer()
    journal(producer, newer("run_start"))
    journal(producer, {**samples.ENVELOPE, "type": "mood", "mood": "fine"})
    journal(producer, {**samples.EVENTS["run_end"], "v": "3.0.0"})
    journal(producer, {**samples.EVENTS["tool_call_decision"], "decision": ["of another shape"]})
    lines = sub("tail", "--no-follow").out.splitlines()
    assert [line.split()[2] for line in lines[:3]] == ["START", "EVENT", "NEWER"]
    assert "client newcomer" in lines[0]
    assert "mood: see it with --json" in lines[1]
    assert "run_end of Interface Pack 3.0.0, which this `sub` cannot read: upgrade it" in lines[2]
    home.ingest()
    home.restart()
    ran = sub("query", "runs", "--all")
    assert "newcomer" in ran.out
