"""A client, the shim and a server: decisions, events and answers over real pipes."""

import json
import signal

import pytest
from tests.adapters.policies import budget, bundle, deny
from tests.adapters.records import calls_of, ends_of
from tests.adapters.wire import upstream
from tests.requirements import requirement

OK = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'


def call(name="t", say=(OK,), id_=1, **more):
    arguments = {"say": list(say), **more}
    params = {"name": name, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}
    return json.dumps(body).encode() + b"\n"


@requirement("1.2:emitted", "5:read", "1.3.1:context-sent")
def test_a_run_from_first_to_last_event(wire):
    started = wire(
        upstream("puppet"),
        env={
            "SUB_RUN_ID": "run-7",
            "SUB_AGENT_ID": "agent-7",
            "SUB_ENV": "ci",
            "SUB_CLIENT": "headless",
            "SUB_PRINCIPAL": "ada",
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": "ada/engine",
        },
    )
    started.send(call())
    assert started.line() == {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}
    assert started.finish() == 0
    events = started.events()
    types = [event["type"] for event in events]
    for needed in (
        "run_start",
        "tool_call_start",
        "tool_call_decision",
        "tool_call_end",
        "run_end",
    ):
        assert types.count(needed) == 1
    for event in events:
        assert (event["run_id"], event["agent_id"]) == ("run-7", "agent-7")
        assert (event["env"], event["client"], event["principal"]) == ("ci", "headless", "ada")
        assert event["workload"]["repo"] == "ada/engine"


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        (bundle(deny("rm")), -32081),
        (bundle(budget(0, "REJECT_WITH_HINT", hint_text="stop")), -32083),
        (bundle(budget(0, "TERMINATE_RUN")), -32084),
    ],
)
def test_a_refused_call_is_answered_and_never_forwarded(wire, tmp_path, policy, code):
    log, playback = tmp_path / "log", tmp_path / "playback"
    playback.write_bytes(b"")
    started = wire(upstream("recorder", log, playback), policy=policy)
    started.send(call("rm", id_="own") + b'{"jsonrpc":"2.0","id":5,"method":"ping"}\n')
    answer = started.line()
    assert (answer["id"], answer["error"]["code"]) == ("own", code)
    started.send(b'{"jsonrpc":"2.0","id":6,"method":"ping"}\n')
    assert started.process.poll() is None, "the shim stays, because clients respawn what dies"
    started.finish()
    assert b"tools/call" not in log.read_bytes()
    assert log.read_bytes().count(b"ping") == 2
    (end,) = ends_of(started.events())
    assert (end["status"], end["error"]["class"], end["error"]["code"]) == (
        "ERROR",
        "policy_block",
        code,
    )


def test_codes_outside_the_range_that_mcp_reserves(wire):
    config = '[shim]\ncodes = "mcp"\n'
    started = wire(upstream("puppet"), policy=bundle(deny("rm")), config=config)
    started.send(call("rm"))
    error = started.line()["error"]
    assert (error["code"], error["data"]["subluminal"]["code"]) == (-31081, -32081)
    started.finish()


def test_every_ending_of_a_call_on_one_wire(wire):
    started = wire(upstream("puppet"), policy=bundle(deny("rm"), budget(1_000)))
    error = '{"jsonrpc":"2.0","id":$ID,"error":{"code":-5,"message":"no"}}'
    odd = '{"id":$ID, "result": {"isError" :  true}, "jsonrpc": "2.0"}'
    started.send(call(id_=1) + call(id_="2", say=[error]) + call(id_=3, say=[odd]))
    started.send(call("rm", id_=4) + call(id_=5, say=[]))
    note = {"method": "notifications/cancelled", "params": {"requestId": 5, "reason": "timed out"}}
    seen = [started.line()["id"] for _ in range(4)]
    started.send(json.dumps(note).encode() + b"\n")
    started.send(call(id_=6, say=[]))
    started.finish()
    assert sorted(map(str, seen)) == ["1", "2", "3", "4"]
    statuses = [end["status"] for end in ends_of(started.events())]
    assert statuses == ["OK", "ERROR", "ERROR", "ERROR", "TIMEOUT", "CANCELLED"]


def test_a_configured_time_is_recorded_though_nothing_else_happens(wire):
    config = "[servers.probe]\ncall_timeout_ms = 30\n"
    started = wire(upstream("puppet"), config=config)
    started.send(call(say=[]))
    started.wait_for('"status":"TIMEOUT"')
    started.finish()
    (end,) = ends_of(started.events())
    assert end["error"]["class"] == "timeout"


def test_a_server_that_dies_ends_its_calls(wire):
    started = wire(upstream("puppet"))
    started.send(call(id_=1, say=[]) + call(id_=2, say=[OK], exit=3))
    assert started.line()["id"] == 2
    started.wait_for('"class":"transport"')
    assert started.finish() == 3
    events = started.events()
    assert [end["status"] for end in ends_of(events)] == ["ERROR", "OK"]
    assert ends_of(events)[0]["error"]["class"] == "transport"
    assert events[-1]["type"] in ("run_end", "shim_health")
    assert [e for e in events if e["type"] == "run_end"][-1]["run"]["status"] == "FAILED"


def test_what_the_server_asks_the_client_uses_ids_of_its_own(wire):
    """roots/list with id 1 while the client's own call 1 is open: two id spaces."""
    started = wire(upstream("puppet"))
    asks = '{"jsonrpc":"2.0","id":1,"method":"roots/list"}'
    started.send(call(id_=1, say=[asks, OK]))
    assert started.line()["method"] == "roots/list"
    assert started.line()["result"] == {"content": []}
    started.send(b'{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}\n')
    started.finish()
    assert [end["status"] for end in ends_of(started.events())] == ["OK"]


def test_many_calls_at_once_answered_in_any_order(wire):
    """Pipelined: start before decision before end, seq without a gap, totals that add up."""
    started = wire(upstream("puppet"), policy=bundle(deny("rm"), budget(500)))
    started.wait_for_policy()
    lines = [call("rm" if n % 7 == 0 else "t", id_=n) for n in range(700)]
    started.send(b"".join(lines))
    answers = [started.line() for _ in lines]
    assert sorted(answer["id"] for answer in answers) == list(range(700))
    assert sum("result" in answer for answer in answers) == 428
    started.finish()
    calls = calls_of(started.events())
    assert len(calls) == 700
    assert all(len(each) == 3 for each in calls)


def test_refusals_stand_between_the_servers_lines(wire, tmp_path):
    """While the server is in the middle of a line, no line of ours gets into it."""
    server = b"".join(
        b'{"jsonrpc":"2.0","method":"n","params":"%b"}\n' % (b"y" * 3_000) for _ in range(400)
    )
    log, playback = tmp_path / "log", tmp_path / "playback"
    playback.write_bytes(server)
    started = wire(upstream("recorder", log, playback, 997), policy=bundle(deny("rm")))
    for number in range(100):
        started.send(call("rm", id_=number))
    started.finish()
    lines = started.received.splitlines(keepends=True)
    ours = [line for line in lines if b'"subluminal"' in line]
    assert [json.loads(line)["id"] for line in ours] == list(range(100))
    assert b"".join(line for line in lines if b'"subluminal"' not in line) == server


def test_a_client_that_is_signalled_with_a_call_open(wire):
    started = wire(upstream("puppet"))
    started.send(call(id_=1) + call(id_=2, say=[]))
    assert started.line()["id"] == 1
    assert started.finish(signum=signal.SIGTERM) == 128 + signal.SIGTERM
    events = started.events()
    assert [end["status"] for end in ends_of(events)] == ["OK", "CANCELLED"]
    assert [e["run"]["status"] for e in events if e["type"] == "run_end"] == ["CANCELLED"]


@requirement("6.4:no-leak")
def test_an_injected_secret_shows_in_no_event_and_no_error(wire, home):
    """The server writes its own secret in every form (Pack 6.4)."""
    secret = "hunter2-8f3a9c1d5e7b"
    config = (
        "[[servers.probe.secret_bindings]]\n"
        'inject_as = "TOKEN"\nsecret_ref = "MY_TOKEN"\nsource = "env"\n'
    )
    policy = bundle(budget(2, "REJECT_WITH_HINT", hint_text="enough"))
    started = wire(upstream("puppet"), config=config, policy=policy, env={"MY_TOKEN": secret})
    told = json.dumps({"jsonrpc": "2.0", "id": 0, "error": {"code": 1, "message": f"bad {secret}"}})
    started.send(call(id_=0, say=[told]))
    said = OK.replace("[]", json.dumps([{"type": "text", "text": f"it is {secret}"}]))
    started.send(call(id_=1, say=[said], key=secret))
    assert secret in json.dumps([started.line(), started.line()]), "the client is not redacted"
    started.send(call(id_=2, key=secret))
    assert secret not in started.raw_line().decode()
    started.finish()
    started.events()
    for file in home.rglob("*"):
        if file.is_file():
            assert secret.encode() not in file.read_bytes(), file
    assert secret.encode() not in started.stderr
