"""The API takes the filter language: in lists, counts and the live stream."""

import json

from websockets.sync.client import unix_connect

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
    assert get("/v1/hints", {"where": "server:nowhere"})["hints"] == []
    address = "ws://ledgerd/v1/stream?after=0&where=decision:ALLOW%20status:OK%20seq%3E35"
    with unix_connect(home.places.ledgerd_socket, address) as stream:
        event = json.loads(stream.recv(timeout=20))["event"]
    assert event["type"] == "tool_call_end"


def test_a_wrong_filter_gets_an_error(home, ledgerd):
    daemon = ledgerd().ready()
    told = ""
    try:
        daemon.client.get("/v1/calls", {"where": "server:a decison:BLOCK"})
    except SubluminalError as error:
        told = f"{error} | {error.hint}"
    assert told == "filter, character 10: unknown field `decison` | did you mean `decision`?"
