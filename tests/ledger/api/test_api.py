"""The HTTP API: access, questions, the live stream, and the OpenAPI document."""

import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.ledger.events import BLOCK, HINT
from tests.ledger.home import Home
from tests.ledger.process import Ledgerd, wait_until
from tests.requirements import requirement
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect, unix_connect

from subluminal.errors import SubluminalError
from subluminal.ledger.api.resources import RESOURCES
from subluminal.ledger.daemon.instance import load_token, read_note

Start = Callable[..., Ledgerd]


@schemathesis.serializer("application/x-ndjson")
def as_lines(_context: object, value: object) -> bytes:
    return str(value).encode("utf-8", "replace")


def ask(
    port: int, path: str = "/v1/status", method: str = "GET", **headers: str
) -> tuple[int, dict[str, Any], dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, json.loads(body), {k.lower(): v for k, v in response.getheaders()}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with one call and a daemon, for tests that only ask."""
    home = Home(str(tmp_path_factory.mktemp("served") / "home"))
    producer = home.producer()
    producer.run_start()
    producer.call()
    daemon = Ledgerd(home.places)
    daemon.ready().has_stored(4)
    yield home
    daemon.close()
    home.close()


@pytest.fixture
def port(served: Home) -> int:
    note = read_note(served.places)
    assert note is not None
    assert note.http_port is not None
    return note.http_port


def test_loopback_needs_the_token_the_host_and_the_origin(served: Home, port: int) -> None:
    """local-is-not-trusted"""
    token = load_token(served.places)
    bearer = {"Authorization": f"Bearer {token}"}
    assert ask(port, **bearer)[0] == 200
    assert ask(port, Cookie=f"a=b; subluminal_token={token}")[0] == 200
    assert ask(port, Origin=f"http://127.0.0.1:{port}", **bearer)[0] == 200
    status, body, headers = ask(port)
    assert (status, body) == (401, {"error": "a token is needed"})
    assert headers["www-authenticate"] == "Bearer"
    assert ask(port, Authorization="Bearer wrong")[0] == 401
    assert ask(port, Authorization=f"Basic {token}")[0] == 401
    assert ask(port, Cookie="subluminal_token")[0] == 401
    assert ask(port, Host="evil.example", **bearer)[0] == 403
    assert ask(port, Host="127.0.0.1", **bearer)[0] == 403
    assert ask(port, Origin="http://evil.example", **bearer)[0] == 403
    assert ask(port, Origin="null", **bearer)[0] == 403
    status, _, headers = ask(port, method="OPTIONS", Origin="http://evil.example")
    assert status == 403
    assert not [name for name in headers if name.startswith("access-control")]
    with pytest.raises(InvalidStatus, match="403"), connect(f"ws://127.0.0.1:{port}/v1/stream"):
        pass


def test_no_http_leaves_only_the_socket(home: Home, ledgerd: Start) -> None:
    daemon = ledgerd("--no-http").ready()
    assert daemon.client.get("/v1/status")["http"] is None


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/v1/calls?limti=3", 400, "unknown parameter `limti`"),
        ("/v1/calls?limit=x", 400, "parameter `limit`: expected a whole number, got a string `x`"),
        ("/v1/calls?limit=0", 400, "limit 0 is out of range"),
        ("/v1/calls?limit=1&limit=2", 400, "parameter `limit` is given twice"),
        ("/v1/calls?decision=MAYBE", 400, "parameter `decision`: unknown value `MAYBE`"),
        ("/v1/calls?since=yesterday", 400, "`yesterday` is not a time"),
        ("/v1/calls?order=up", 400, "unknown order `up`"),
        ("/v1/calls?cursor=x", 400, "`x` is not a valid cursor"),
        ("/v1/calls?run=%00", 400, "parameter `run` holds a NUL character"),
        ("/v1/calls/absent", 404, "`absent` is not in the ledger"),
        ("/v1/runs/absent", 404, "`absent` is not in the ledger"),
        ("/v2", 404, "there is no such address"),
        ("/v1/events", 405, "this address does not take this method"),
    ],
)
def test_a_wrong_question_gets_an_error(
    served: Home, port: int, path: str, status: int, message: str
) -> None:
    found, body, headers = ask(port, path, Authorization=f"Bearer {load_token(served.places)}")
    assert (found, body["error"]) == (status, message)
    assert headers["cache-control"] == "no-store" or status == 405


def test_every_resource_answers(home: Home, ledgerd: Start) -> None:
    producer = home.producer()
    producer.run_start()
    producer.call(decision=HINT)
    daemon = ledgerd().ready()
    daemon.has_stored(4)
    get = daemon.client.get
    (call,) = get("/v1/calls", {"decision": "REJECT_WITH_HINT"})["calls"]
    assert call["reason_code"] == "ARGS"
    assert get(f"/v1/calls/{call['call_id']}")["hint"]["hint_kind"] == "ARG_FIX"
    assert get("/v1/runs")["runs"][0]["mode"] == "guardrails"
    assert get("/v1/runs/run")["calls"] == 1
    assert get("/v1/hints", {"run": "run"})["hints"][0]["outcome"] == "pending"
    assert get("/v1/facets", {"tool": "st*"})["total"] == 1
    assert get("/v1/histogram", {"bar_ms": 60_000})["bars"][0]["counts"] == {"REJECT_WITH_HINT": 1}
    assert get("/v1/tools")[0]["refused"] == 1
    assert get("/v1/tools")[0]["definition_hash"] is None
    assert get("/v1/policies")[0]["policy_id"] == "p"
    wait_until(lambda: get("/v1/calls", {"text": "well"})["calls"], "the text index")
    with pytest.raises(SubluminalError, match="unknown parameter"):
        get("/v1/status", {"x": 1})


def test_metrics_are_what_prometheus_reads(served: Home, port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    bearer = {"Authorization": f"Bearer {load_token(served.places)}"}
    connection.request("GET", "/metrics", headers=bearer)
    response = connection.getresponse()
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = response.read().decode().splitlines()
    connection.close()
    assert "subluminal_ledger_events_total 4" in lines
    assert 'subluminal_ledger_calls{decision="ALLOW",status="OK"} 1' in lines
    assert "subluminal_ledger_up 1" in lines
    names = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {line.split("{")[0].split()[0] for line in lines if line[0] != "#"} == names


def next_event(stream: ClientConnection) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(stream.recv(timeout=20))
    return message


def test_the_live_stream_filters_and_resumes(home: Home, ledgerd: Start) -> None:
    producer = home.producer()
    producer.call()
    daemon = ledgerd().ready()
    daemon.has_stored(3)
    path = home.places.ledgerd_socket
    with unix_connect(path, "ws://ledgerd/v1/stream?after=0") as stream:
        seen = [next_event(stream) for _ in range(3)]
        assert [each["position"] for each in seen] == [1, 2, 3]
        assert seen[0]["event"]["call"]["preview"]["args_preview"].startswith('{"path"')
        producer.call()
        assert next_event(stream)["position"] == 4
    for _ in range(3):
        producer.call()
    daemon.has_stored(15)
    with unix_connect(path, "ws://ledgerd/v1/stream?after=4") as stream:
        assert [next_event(stream)["position"] for _ in range(11)] == list(range(5, 16))
    with unix_connect(path, "ws://ledgerd/v1/stream?decision=BLOCK") as stream:
        producer.call(1)
        producer.call(1, decision=BLOCK)
        event = next_event(stream)["event"]
        assert event["decision"]["action"] == "BLOCK"
        daemon.stop()
        with pytest.raises(ConnectionClosed, match="ledgerd is stopping"):
            next_event(stream)


def test_a_stream_with_a_wrong_question_is_closed(home: Home, ledgerd: Start) -> None:
    ledgerd().ready()
    with (
        unix_connect(home.places.ledgerd_socket, "ws://ledgerd/v1/stream?afterr=1") as stream,
        pytest.raises(ConnectionClosed, match="unknown parameter `afterr`"),
    ):
        next_event(stream)


@requirement("001-11.4:roads")
def test_post_takes_lines_and_refuses_the_rest(served: Home, port: int) -> None:
    bearer = f"Bearer {load_token(served.places)}"

    def post(body: bytes, media_type: str = "application/x-ndjson") -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        headers = {"Authorization": bearer, "Content-Type": media_type}
        connection.request("POST", "/v1/events", body, headers)
        response = connection.getresponse()
        answer = response.status, json.loads(response.read())
        connection.close()
        return answer

    assert post(b"") == (200, {"stored": 0, "known": 0, "quarantined": 0})
    assert post(b"junk\n\nmore") == (200, {"stored": 0, "known": 0, "quarantined": 2})
    assert post(b"junk") == (200, {"stored": 0, "known": 0, "quarantined": 1})
    assert post(b"x", "text/html")[0] == 415
    assert post(b"x" * 17_000_000)[0] == 413


def test_the_openapi_document_holds(served: Home, port: int) -> None:
    """Schemathesis asks whatever the document allows, and some of what it does not."""
    bearer = {"Authorization": f"Bearer {load_token(served.places)}"}
    schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json", headers=bearer)
    checks = [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
    ]
    operations = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        operations += 1
        strategy = operation.as_strategy()

        @settings(max_examples=8, suppress_health_check=list(HealthCheck), deadline=None)
        @given(case=strategy)
        def check(case: schemathesis.Case) -> None:
            case.call_and_validate(headers=bearer, checks=checks, timeout=20)

        check()
    assert operations == len(RESOURCES) + 4
