"""The API takes the filter language: in lists, counts and the live stream."""

import json

import pytest
from tests.ledger.events import audit_record, judged
from websockets.sync.client import unix_connect

from subluminal.clock import rfc3339
from subluminal.errors import SubluminalError


def test_every_resource_takes_filters(home, ledgerd):
    producer = home.producer()
    producer.run_start()
    for number in range(40):
        producer.call(number)
    daemon = ledgerd().ready()
    daemon.has_stored(121)
    get = daemon.client.get
    calls = get("/v1/calls", {"where": "server:git seq>10 seq<=20"})["calls"]
    assert {call["server_name"] for call in calls} == {"git"}
    assert get("/v1/facets", {"where": "seq>10 seq<=20"})["total"] == 10
    assert len(get("/v1/scores", {"where": "status:RUNNING"})["runs"]) == 1
    assert get("/v1/scores", {"where": "agent:none"})["runs"] == []
    blocked = get("/v1/calls", {"where": "decision:BLOCK"})["calls"]
    assert get("/v1/calls", {"where": "decision:BLOCK", "server": "fs"})["calls"] == [
        call for call in blocked if call["server_name"] == "fs"
    ]
    denied = get("/v1/calls", {"outcome": "DENY", "where": "decision:BLOCK"})["calls"]
    assert denied == blocked != []
    assert get("/v1/calls", {"outcome": "APPROVED"})["calls"] == []
    assert get("/v1/hints", {"where": "server:nowhere"})["hints"] == []
    address = "ws://ledgerd/v1/stream?after=0&where=decision:ALLOW%20status:OK%20seq%3E35"
    with unix_connect(home.places.ledgerd_socket, address) as stream:
        event = json.loads(stream.recv(timeout=20))["event"]
    assert event["type"] == "tool_call_end"


def test_intents(home, ledgerd):
    """ledgerd tells what packs decided. It does not know how far an execution is."""
    producer = home.producer()
    producer.run_start()
    producer.call(1)
    for number in range(5):
        kind = "REFUSE" if number % 2 else "EXECUTE"
        call_id = producer.begin(number, judged(kind, f"{number}" * 64))
        producer.audit(call_id, audit_record(f"n-{number}"))
        producer.finish(call_id)
    daemon = ledgerd().ready()
    daemon.has_stored(24)
    get = daemon.client.get

    def nonces(**asked):
        return [row["nonce"] for row in get("/v1/intents", asked)["intents"]]

    assert nonces() == ["n-4", "n-3", "n-2", "n-1", "n-0"]
    assert nonces(order="oldest", limit=2) == ["n-0", "n-1"]
    assert nonces(where="kernel:REFUSE pack:p*", run="run") == ["n-3", "n-1"]
    assert nonces(pack="other") == []
    assert nonces(since=rfc3339(producer.clock_ms - 10)) == ["n-4"]
    assert nonces(until=rfc3339(producer.clock_ms - 10)) == ["n-3", "n-2", "n-1", "n-0"]
    first = get("/v1/intents", {"limit": 3})
    rest = get("/v1/intents", {"limit": 3, "cursor": first["next"]})
    assert [row["nonce"] for row in rest["intents"]] == ["n-1", "n-0"]
    assert rest["next"] is None
    assert first["intents"][0] == {
        "id": 6,
        "ts": first["intents"][0]["ts"],
        "run_id": "run",
        "call_id": call_id,
        "pack": "pay",
        "version": "1.2.0",
        "fingerprint": "f" * 64,
        "intent_kind": "pay.out",
        "intent_hash": "4" * 64,
        "nonce": "n-4",
        "principal": "llm",
        "taint": "UNTRUSTED",
        "decision_kind": "EXECUTE",
        "refusal_code": None,
        "guard": None,
        "divergence": None,
    }
    calls = get("/v1/calls", {"where": "intent:pay.* kernel!=EXECUTE"})["calls"]
    assert [call["kernel"]["nonce"] for call in calls] == ["n-3", "n-1"]
    assert get("/v1/calls", {"where": "seq:1"})["calls"][0]["kernel"] is None
    assert get("/v1/facets", {"where": "pack:pay"})["total"] == 5
    with pytest.raises(SubluminalError, match="unknown field `status`"):
        get("/v1/intents", {"where": "status:done"})


def test_a_wrong_filter_gets_an_error(home, ledgerd):
    daemon = ledgerd().ready()
    told = ""
    try:
        daemon.client.get("/v1/calls", {"where": "server:a decison:BLOCK"})
    except SubluminalError as error:
        told = f"{error} | {error.hint}"
    assert told == "filter, character 10: unknown field `decison` | did you mean `decision`?"
