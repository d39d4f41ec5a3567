"""Contract A for every way that a call can end. Each test checks that its journals are sound."""

import json
import os

import pytest
from tests.adapters.desk import call_line
from tests.adapters.policies import budget, deny, rule, snapshot, throttle
from tests.adapters.records import calls_of, ends_of
from tests.hosts import enforcer_in
from tests.processes import wait_until
from tests.requirements import requirement

from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import ErrorClass, Layer, Status
from subluminal.policy.evaluation import Engine

OK = b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":"hi"}]}}\n'


def test_a_call_that_goes_well(desk):
    desk = desk()
    assert desk.call("read", {"path": "/x"}, _meta={"claudecode/toolUseId": "toolu_1"})
    desk.server(OK % b"1")
    (start, decision, end), *_ = calls_of(desk.events())
    assert start["call"] == {
        "call_id": start["call"]["call_id"],
        "server_name": "probe",
        "tool_name": "read",
        "args_hash": start["call"]["args_hash"],
        "transport": "mcp_stdio",
        "bytes_in": start["call"]["bytes_in"],
        "seq": 1,
        "mono_ms": start["call"]["mono_ms"],
        "client_call_id": "toolu_1",
        "preview": start["call"]["preview"],
    }
    assert start["call"]["preview"]["args_preview"] == '{"path":"/x"}'
    assert decision["decision"]["action"] == "ALLOW"
    assert decision["decision"]["explain"]["reason_code"] == "DEFAULT_ALLOW"
    assert (end["status"], end["bytes_out"]) == ("OK", len(OK % b"1") - 1)
    assert end["preview"]["result_preview"] == '{"content":[{"type":"text","text":"hi"}]}'
    assert "error" not in end


@requirement("1.2:emitted", "1.5:seq", "0.3:call-id-unique")
def test_a_run_is_told_from_its_start_to_its_end(desk):
    desk = desk(snapshot(deny("rm")))
    for number in range(1, 6):
        if desk.call("rm" if number == 3 else "read", id=number):
            desk.server(OK % str(number).encode())
    events = desk.events()
    types = [event["type"] for event in events]
    assert types[0] == "run_start"
    assert types[-1] == "run_end"
    assert [call[0]["call"]["seq"] for call in calls_of(events)] == [1, 2, 3, 4, 5]
    assert len({call[0]["call"]["call_id"] for call in calls_of(events)}) == 5
    assert events[-1]["run"]["status"] == "SUCCEEDED"
    summary = events[-1]["run"]["summary"]
    assert (summary["calls_total"], summary["calls_blocked"], summary["errors_total"]) == (5, 1, 1)


@pytest.mark.parametrize(
    ("said", "status", "error"),
    [
        (
            '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"bad path"}}',
            "ERROR",
            {"class": "upstream_error", "message": "bad path", "code": -32602},
        ),
        (
            '{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError" : true}}',
            "ERROR",
            {"class": "upstream_error", "message": "the tool reported an error"},
        ),
        (
            '{"id":1,"result":{"isError":\\ttrue},"jsonrpc":"2.0"}'.replace("\\t", "\t"),
            "ERROR",
            {"class": "upstream_error", "message": "the tool reported an error"},
        ),
        ('{"jsonrpc":"2.0","id":1,"result":{"isError":false}}', "OK", None),
    ],
)
def test_how_the_server_ended_it(desk, said, status, error):
    desk = desk()
    desk.call("t")
    desk.server(said.encode() + b"\n")
    (end,) = ends_of(desk.events())
    assert (end["status"], end.get("error")) == (status, error)


def test_an_upstreams_error_message_is_masked_and_cut(desk):
    desk = desk()
    desk.call("t")
    token = "ghp_" + "a1B2" * 9
    message = f"no access with {token} " + "y" * 100_000
    desk.server(
        json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": message}}).encode()
        + b"\n"
    )
    (end,) = ends_of(desk.events())
    assert token not in end["error"]["message"]
    assert len(end["error"]["message"]) <= 1_024


@pytest.mark.parametrize(
    ("reason", "status", "class_"),
    [
        ("SdkError: Request timed out", "TIMEOUT", "timeout"),
        ("AbortError: user-cancel", "CANCELLED", "unknown"),
        (None, "CANCELLED", "unknown"),
    ],
)
def test_the_client_gives_up_and_a_late_answer_changes_nothing(desk, reason, status, class_):
    desk = desk()
    desk.call("slow", id=2)
    params = {"requestId": 2} if reason is None else {"requestId": 2, "reason": reason}
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    assert desk.client(json.dumps(note).encode()), "the server must hear of it"
    desk.server(OK % b"2")
    (end,) = ends_of(desk.events())
    assert (end["status"], end["error"]["class"]) == (status, class_)


def test_a_call_past_its_configured_time_is_a_timeout_and_is_not_cut_off(desk):
    desk = desk(call_timeout_ms=1)
    desk.call("slow")
    while not all(each.ruling.finished for each in desk.calls._pending):
        desk.calls.time_out()
    desk.server(OK % b"1")
    assert desk.calls.open == 0
    (end,) = ends_of(desk.events())
    assert (end["status"], end["error"]["class"]) == ("TIMEOUT", "timeout")


def test_upstream_death_ends_what_is_open(desk):
    desk = desk()
    desk.call("a", id=1)
    desk.call("b", id=2)
    desk.server(OK % b"1")
    desk.calls.end_all(Status.ERROR, "the server exited with code 3", ErrorClass.TRANSPORT)
    ends = ends_of(desk.events())
    assert [end["status"] for end in ends] == ["OK", "ERROR"]
    assert ends[1]["error"] == {"class": "transport", "message": "the server exited with code 3"}


def test_a_call_without_an_id_is_recorded_and_waits_for_nothing(desk):
    desk = desk(snapshot(deny("rm")))
    assert desk.call("read", id=...)
    assert not desk.call("rm", id=...)
    assert desk.answers == [], "a notification has no answer, also when it is refused"
    assert desk.calls.open == 0
    assert [end["status"] for end in ends_of(desk.events())] == ["OK", "ERROR"]


def test_answers_out_of_order_and_two_calls_of_one_id(desk):
    desk = desk()
    for id_ in (1, "1", 1, 2):
        desk.call("t", {"n": id_}, id=id_)
    for text in (b"2", b"1", b'"1"', b"1", b"1", b"99"):
        desk.server(OK % text)
    assert desk.calls.open == 0
    assert [end["status"] for end in ends_of(desk.events())] == ["OK"] * 4


@pytest.mark.parametrize(
    "id_", [0, -1, "x", "", None, 1.5, 0.1, 10**30, "\u20ac\n", [1], {"a": 1}, True]
)
def test_any_id_meets_its_answer(desk, id_):
    desk = desk(snapshot(deny("rm")))
    desk.call("t", id=id_)
    assert desk.calls.open == 1
    desk.server(OK % json.dumps(id_).encode())
    assert desk.calls.open == 0
    assert not desk.call("rm", id=id_)
    assert desk.answer()["id"] == id_
    assert [end["status"] for end in ends_of(desk.events())] == ["OK", "ERROR"]


@requirement("3.3:hint-issued")
@pytest.mark.parametrize(
    ("policy", "actions", "code"),
    [
        (snapshot(deny("t")), ["BLOCK"], -32081),
        (snapshot(throttle(1, 250)), ["ALLOW", "THROTTLE"], -32082),
        (
            snapshot(budget(1, "REJECT_WITH_HINT", hint_text="finish now")),
            ["ALLOW", "REJECT_WITH_HINT"],
            -32083,
        ),
        (snapshot(budget(1, "TERMINATE_RUN")), ["ALLOW", "TERMINATE_RUN", "TERMINATE_RUN"], -32084),
        (snapshot(deny("t"), mode="control"), ["REJECT_WITH_HINT"], -32083),
        (snapshot(deny("t"), mode="observe"), ["ALLOW"], None),
    ],
)
def test_every_refusal_is_answered_and_recorded(desk, policy, actions, code):
    desk = desk(policy)
    for number, action in enumerate(actions, 1):
        assert desk.call("t", id=number) == (action == "ALLOW")
        if action == "ALLOW":
            desk.server(OK % str(number).encode())
        else:
            assert desk.answer()["error"]["code"] == code
            assert desk.answer()["id"] == number
    events = desk.events()
    calls = calls_of(events)
    assert [call[1]["decision"]["action"] for call in calls] == actions
    for call, action in zip(calls, actions, strict=True):
        if action != "ALLOW":
            assert call[2]["status"] == "ERROR"
            assert call[2]["error"]["class"] == "policy_block"
            assert call[2]["error"]["code"] == code
            ours = desk.answer()["error"]["data"]["subluminal"]
            assert ours["args_hash"] == call[0]["call"]["args_hash"]
    hints = [event for event in events if event["type"] == "hint_issued"]
    assert len(hints) == actions.count("REJECT_WITH_HINT")
    if "TERMINATE_RUN" in actions:
        assert events[-1]["run"]["status"] == "TERMINATED"


def test_a_batch_passes_whole(desk):
    desk = desk(snapshot(deny("rm")))
    lines = [json.loads(call_line("a", id=1)), json.loads(call_line("b", id=2))]
    assert desk.client(json.dumps(lines).encode())
    desk.server(b'[{"id":2,"result":{}},{"id":1,"error":{"code":1,"message":"m"}}]\n')
    assert [end["status"] for end in ends_of(desk.events())] == ["ERROR", "OK"]


@pytest.mark.parametrize("codes", ["pack", "mcp"])
def test_a_batch_with_a_refused_call_passes_nothing_and_answers_each_id(desk, codes):
    desk = desk(snapshot(deny("rm")), codes=codes)
    batch = [
        json.loads(call_line("a", id=1)),
        json.loads(call_line("rm", id="two")),
        json.loads(call_line("rm", id=...)),
        {"jsonrpc": "2.0", "id": 3, "method": "ping"},
    ]
    assert not desk.client(json.dumps(batch).encode())
    answer = desk.answer()
    offset = 0 if codes == "pack" else 1_000
    assert [(each["id"], each["error"]["code"]) for each in answer] == [
        (1, -32081 + offset),
        ("two", -32081 + offset),
        (3, -32081 + offset),
    ]
    ours = [each["error"]["data"]["subluminal"] for each in answer]
    assert [each["reason_code"] for each in ours] == [
        "BATCH_REFUSED",
        "DENYLIST_MATCH",
        "BATCH_REFUSED",
    ]
    assert desk.calls.open == 0
    events = desk.events()
    calls = calls_of(events)
    assert [call[2]["status"] for call in calls] == ["CANCELLED", "ERROR", "ERROR"]
    assert [call[1]["decision"]["action"] for call in calls] == ["BLOCK"] * 3
    ids = [call[0]["call"]["call_id"] for call in calls]
    assert [each["call_id"] for each in ours] == [ids[0], ids[1], ids[1]], "ping names the culprit"
    assert [each["tool_name"] for each in ours] == ["a", "rm", "rm"]
    assert events[-1]["run"]["summary"]["calls_allowed"] == 0


def test_a_call_of_a_refused_batch_may_be_sent_again(desk):
    """It was never forwarded, so it is not a duplicate; but it was an attempt."""
    dedupe = {
        "dedupe": {
            "scope": "run",
            "window_ms": 60_000,
            "key": "args_hash",
            "on_duplicate": "BLOCK",
        }
    }
    desk = desk(snapshot(deny("rm"), rule("twice", "dedupe", dedupe), budget(4)))
    batch = [json.loads(call_line("a", id=1)), json.loads(call_line("rm", id=2))]
    assert not desk.client(json.dumps(batch).encode())
    assert desk.call("a", id=3)
    assert not desk.call("a", id=4), "now it is one"
    assert not desk.call("b", {"n": 5}, id=5), "the budget counts attempts"
    assert desk.answer()["error"]["data"]["subluminal"]["rule_id"] == "budget"


@pytest.mark.parametrize(
    ("policy", "reasons"),
    [
        (snapshot(budget(1)), ["BATCH_REFUSED", "BUDGET_EXCEEDED"]),
        (
            snapshot(
                rule(
                    "twice",
                    "dedupe",
                    {
                        "dedupe": {
                            "scope": "run",
                            "window_ms": 60_000,
                            "key": "args_hash",
                            "on_duplicate": "BLOCK",
                        }
                    },
                )
            ),
            ["BATCH_REFUSED", "DEDUPE_DUPLICATE"],
        ),
        (snapshot(budget(0, "TERMINATE_RUN")), ["BUDGET_EXCEEDED", "RUN_TERMINATED"]),
    ],
    ids=["budget", "dedupe", "terminate"],
)
def test_the_calls_of_a_batch_are_counted_one_after_the_other(desk, policy, reasons):
    desk = desk(policy)
    batch = [json.loads(call_line("a", id=1)), json.loads(call_line("a", id=2))]
    assert not desk.client(json.dumps(batch).encode())
    ours = [each["error"]["data"]["subluminal"] for each in desk.answer()]
    assert [each["reason_code"] for each in ours] == reasons
    desk.events()


def test_a_batch_of_several_runs_cannot_be_decided_as_one(desk):
    meta = {"x-codex-turn-metadata": {"session_id": "another"}}
    desk = desk(snapshot(deny("rm")))
    desk.calls.names_runs = True
    batch = [json.loads(call_line("a", id=1)), json.loads(call_line("a", id=2, _meta=meta))]
    assert not desk.client(json.dumps(batch).encode())
    ours = json.loads(desk.answers[0])["error"]["data"]["subluminal"]
    assert ours["reason_code"] == "AMBIGUOUS_MESSAGE"


def test_a_session_id_in_a_batch_of_a_client_that_is_not_codex_names_no_run(desk):
    """Else any client could leave its run, and with it the run's budgets."""
    meta = {"x-codex-turn-metadata": {"session_id": "another"}}
    desk = desk(snapshot(budget(1)))
    assert desk.call("a", id=1)
    assert not desk.client(json.dumps([json.loads(call_line("a", id=2, _meta=meta))]).encode())
    assert {event["run_id"] for event in desk.events()} == {"run-1"}


def rounds_of(events):
    """The number and the action of every further round."""
    return [
        (event["call"]["round"], event["decision"]["action"])
        for event in events
        if event["type"] == "call_round"
    ]


def put_in_force(desk, *policies):
    """Changes the policies of the run, as a reload does."""
    desk.enforcer.engine = Engine([(Layer.REPOSITORY, each) for each in policies], Identity())


class TestRounds:
    """MCP 2026-07-28: a call that asks for input and goes on is one call (every-mcp-era)."""

    ASKS = (
        '{"jsonrpc":"2.0","id":%d,"result":{"resultType":"input_required","requestState":"%s"}}\n'
    )

    def asks(self, id_, state="s"):
        return (self.ASKS % (id_, state)).encode()

    def test_rounds_are_one_call_one_budget_unit_and_no_duplicate(self, desk):
        dedupe = {
            "dedupe": {
                "scope": "run",
                "window_ms": 60_000,
                "key": "args_hash",
                "on_duplicate": "BLOCK",
            }
        }
        desk = desk(snapshot(budget(1), rule("twice", "dedupe", dedupe)))
        assert desk.call("buy", {"n": 1}, id=1)
        desk.server(self.asks(1))
        assert desk.calls.open == 0, "nobody waits for the server now"
        assert desk.call("buy", {"n": 1}, id=2, requestState="s", inputResponses={})
        desk.server(self.asks(2, "s2"))
        assert desk.call("buy", {"n": 1}, id=3, requestState="s2")
        desk.server(OK % b"3")
        events = desk.events()
        (call,) = calls_of(events)
        assert [event["type"] for event in call][-1] == "tool_call_end"
        assert call[-1]["status"] == "OK"
        assert rounds_of(events) == [(2, "ALLOW"), (3, "ALLOW")]

    def test_a_round_without_state_is_known_by_its_answers(self, desk):
        desk = desk(snapshot(budget(1)))
        desk.call("buy", id=1)
        desk.server(b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required"}}\n')
        assert desk.call("buy", id=2, inputResponses={"a": 1})
        desk.server(OK % b"2")
        assert len(calls_of(desk.events())) == 1

    @pytest.mark.parametrize(
        ("tool", "arguments", "state"),
        [("buy", {"n": 2}, "s"), ("sell", {"n": 1}, "s"), ("buy", {"n": 1}, "forged")],
    )
    def test_another_call_does_not_pass_as_the_next_round(self, desk, tool, arguments, state):
        desk = desk(snapshot(budget(1)))
        desk.call("buy", {"n": 1}, id=1)
        desk.server(self.asks(1))
        assert not desk.call(tool, arguments, id=2, requestState=state)

    def test_a_state_is_good_once(self, desk):
        desk = desk(snapshot(budget(1)))
        desk.call("buy", id=1)
        desk.server(self.asks(1))
        assert desk.call("buy", id=2, requestState="s")
        assert not desk.call("buy", id=3, requestState="s")

    def test_a_run_that_is_over_has_no_further_rounds(self, desk):
        desk = desk(snapshot(budget(1, "TERMINATE_RUN")))
        desk.call("buy", id=1)
        desk.server(self.asks(1))
        assert not desk.call("other", id=2)
        assert not desk.call("buy", id=3, requestState="s")
        error = desk.answer()["error"]
        assert error["code"] == -32084
        events = desk.events()
        assert rounds_of(events) == [(2, "TERMINATE_RUN")]
        first, other = calls_of(events)
        assert error["data"]["subluminal"]["call_id"] == first[0]["call"]["call_id"]
        assert (first[-1]["status"], first[-1]["error"]["class"]) == ("ERROR", "policy_block")
        assert len(other) == 3

    def test_a_rule_that_ends_the_run_in_a_further_round_ends_it_for_every_call(self, desk):
        desk = desk(snapshot(budget(1)))
        desk.call("buy", id=1)
        desk.server(self.asks(1))
        put_in_force(desk, snapshot(budget(0, "TERMINATE_RUN")))
        assert not desk.call("buy", id=2, requestState="s")
        put_in_force(desk, snapshot(deny("rm")))
        assert not desk.call("other", id=3)
        assert desk.answer()["error"]["data"]["subluminal"]["reason_code"] == "RUN_TERMINATED"

    def test_denies_of_a_changed_policy_hold_for_the_next_round(self, desk):
        desk = desk(snapshot(budget(1)))
        desk.call("buy", {"n": 1}, id=1)
        desk.server(self.asks(1))
        put_in_force(desk, snapshot(deny("buy", rule_id="no-buy")))
        assert not desk.call("buy", {"n": 1}, id=2, requestState="s")
        ours = desk.answer()["error"]["data"]["subluminal"]
        assert (ours["rule_id"], ours["action"]) == ("no-buy", "BLOCK")
        assert not desk.call("buy", {"n": 1}, id=3, requestState="s"), "the call is over"
        events = desk.events()
        assert rounds_of(events) == [(2, "BLOCK")]
        assert ours["call_id"] == calls_of(events)[0][0]["call"]["call_id"]
        summary = events[-1]["run"]["summary"]
        assert (summary["calls_allowed"], summary["calls_blocked"]) == (0, 2)

    def test_rounds_have_a_bound(self, desk):
        desk = desk(snapshot(budget(1)))
        desk.call("buy", id=1)
        for number in range(2, 33):
            desk.server(self.asks(number - 1))
            assert desk.call("buy", id=number, requestState="s"), number
        desk.server(self.asks(32))
        assert not desk.call("buy", id=33, requestState="s")
        ours = desk.answer()["error"]["data"]["subluminal"]
        assert ours["reason_code"] == "ROUNDS_EXCEEDED"
        assert "`max_rounds`" in desk.answer()["error"]["message"]
        events = desk.events()
        assert rounds_of(events)[-1] == (33, "BLOCK")
        assert len(rounds_of(events)) == 32
        assert [end["status"] for end in ends_of(events)] == ["ERROR"]

    def test_the_bound_is_only_noted_where_nothing_is_enforced(self, desk):
        desk = desk()
        desk.call("buy", id=1)
        for number in range(2, 35):
            desk.server(self.asks(number - 1))
            assert desk.call("buy", id=number, requestState="s"), number
        last = [event for event in desk.events() if event["type"] == "call_round"][-1]["decision"]
        assert last["action"] == "ALLOW"
        assert last["would_be"]["reason_code"] == "ROUNDS_EXCEEDED"

    def test_a_refused_round_does_not_count_as_an_error_of_the_server(self, desk):
        breaker = {
            "breaker": {
                "scope": "run",
                "error_threshold": 1,
                "window_ms": 60_000,
                "on_trip": "BLOCK",
            }
        }
        trips = rule("trips", "breaker", breaker)
        desk = desk(snapshot(trips))
        desk.call("buy", id=1)
        desk.server(self.asks(1))
        put_in_force(desk, snapshot(trips, deny("buy")))
        assert not desk.call("buy", id=2, requestState="s")
        put_in_force(desk, snapshot(trips))
        assert desk.call("buy", id=3), "the server has made no error"

    def test_another_run_does_not_continue_a_call(self, desk):
        """Codex uses one server process for several sessions (shared-runs)."""
        meta = {"x-codex-turn-metadata": {"session_id": "another"}}
        desk = desk(snapshot(budget(1)))
        desk.calls.names_runs = True
        desk.call("buy", id=1)
        desk.server(self.asks(1))
        assert desk.call("buy", id=2, requestState="s", _meta=meta), "a first call of its own run"
        desk.server(OK % b"2")
        events = desk.events()
        assert rounds_of(events) == []
        assert {event["run_id"] for event in events} == {"run-1", "another"}

    def test_a_call_that_timed_out_on_record_is_not_continued(self, desk):
        desk = desk(call_timeout_ms=1)
        desk.call("buy", id=1)
        wait_until(lambda: desk.calls.time_out() or desk.calls.unrecorded, "the timeout")
        desk.server(self.asks(1))
        assert desk.call("buy", id=2, requestState="s")
        desk.server(OK % b"2")
        events = desk.events()
        assert rounds_of(events) == []
        assert [end["status"] for end in ends_of(events)] == ["TIMEOUT", "OK"]

    def test_a_round_that_cannot_be_recorded_follows_decision_on_error(self, desk):
        desk = desk(snapshot(budget(1)))
        desk.call("buy", id=1)
        desk.server(self.asks(1))
        desk.calls.record(None)
        os.close(desk.enforcer.run.journal._fd)
        desk.enforcer.run.journal._fd = os.open("/dev/full", os.O_WRONLY)
        assert not desk.call("buy", id=2, requestState="s")
        ours = desk.answer()["error"]["data"]["subluminal"]
        assert ours["reason_code"] == "JOURNAL_UNAVAILABLE"

    def test_what_never_goes_on_ends_with_the_client(self, desk):
        desk = desk()
        desk.call("buy", id=1)
        desk.server(self.asks(1))
        desk.calls.end_all(Status.CANCELLED, "the client left", ErrorClass.UNKNOWN)
        (end,) = ends_of(desk.events())
        assert end["status"] == "CANCELLED"

    def test_many_unfinished_calls_are_bounded(self, desk):
        desk = desk()
        for number in range(300):
            desk.call("buy", {"n": number}, id=number)
            desk.server(self.asks(number))
        assert len(list(desk.calls._pending)) == 256
        desk.calls.end_all(Status.CANCELLED, "the client left", ErrorClass.UNKNOWN)
        assert len(ends_of(desk.events())) == 300


class TestAmbiguous:
    """Always recorded; forwarded only if nothing is enforced (byte-transparent)."""

    LINE = b'{"jsonrpc":"2.0","id":4,"method":"ping","method":"tools/call","params":{"name":"rm"}}'

    def test_without_a_policy_it_is_forwarded_and_recorded(self, desk):
        desk = desk()
        assert desk.client(self.LINE)
        (call,) = calls_of(desk.events())
        assert call[1]["decision"]["explain"]["reason_code"] == "AMBIGUOUS_MESSAGE"
        assert "duplicate key" in call[1]["decision"]["explain"]["summary"]

    @pytest.mark.parametrize(("on_error", "passes"), [("BLOCK", False), ("ALLOW", True)])
    def test_when_enforcing_it_follows_decision_on_error(self, desk, on_error, passes):
        desk = desk(snapshot(deny("rm"), decision_on_error=on_error))
        assert desk.client(self.LINE) is passes
        if not passes:
            assert desk.answer()["id"] == 4
            assert (
                desk.answer()["error"]["data"]["subluminal"]["reason_code"] == "AMBIGUOUS_MESSAGE"
            )
        desk.events()

    def test_in_observe_mode_it_passes(self, desk):
        assert desk(snapshot(deny("rm"), mode="observe")).client(self.LINE)

    def test_where_no_id_can_be_told_the_answer_has_none(self, desk):
        desk = desk(snapshot(deny("rm")))
        assert not desk.client(b"{'id':1}")
        assert desk.answer()["id"] is None

    def test_reading_tools_that_may_fail_open_do_not_open_for_it(self, desk):
        tag = rule("reads", "tag", {"tag": {"add_risk_class": ["read_like"]}})
        desk = desk(snapshot(tag, deny("rm"), fail_open_read_tools=True))
        assert not desk.client(self.LINE)

    def test_a_run_that_is_over_stays_over(self, desk):
        desk = desk(snapshot(budget(0, "TERMINATE_RUN"), decision_on_error="ALLOW"))
        assert not desk.call("t")
        assert not desk.client(self.LINE)
        assert desk.answer()["error"]["code"] == -32084

    def test_a_policy_that_should_be_there_and_is_not_lets_nothing_past(self, desk):
        desk = desk()
        desk.enforcer.refusal = snapshot_refusal()
        assert not desk.client(self.LINE)
        assert not desk.call("t")


def snapshot_refusal():
    from subluminal.contracts.decision import Decision
    from subluminal.contracts.vocabulary import Action, ReasonCode, Severity

    return Decision(
        action=Action.BLOCK,
        rule_id=None,
        severity=Severity.CRITICAL,
        reason_code=ReasonCode.EVALUATION_ERROR,
        summary="the policy is not in force",
    )


def test_calls_that_name_their_run_are_recorded_there(home, desk):
    desk = desk(snapshot(deny("rm")))
    desk.calls.names_runs = True
    assert desk.call("t", id=1, _meta={"x-codex-turn-metadata": {"session_id": "a"}})
    assert desk.call("t", id=2, _meta={"x-codex-turn-metadata": {"session_id": "b"}})
    desk.server(OK % b"1" + OK % b"2")
    calls = calls_of(desk.events())
    assert sorted(call[0]["run_id"] for call in calls) == ["a", "b"]
    assert [call[2]["status"] for call in calls] == ["OK", "OK"]


def test_a_line_that_could_not_be_kept_is_refused_in_every_mode(desk):
    from subluminal.adapters.mcp.large import LargeMessage

    desk = desk()
    lost = LargeMessage(id=8, problem="the disk is full", is_lost=True)
    assert not desk.calls.decide_large(lost, 5_000_000)
    assert desk.answer()["id"] == 8
    (call,) = calls_of(desk.events())
    assert call[1]["decision"]["action"] == "BLOCK"
    assert call[0]["call"]["bytes_in"] == 5_000_000


@requirement("0.3:call-id-global")
def test_shims_of_one_run_and_of_others_never_share_a_call_id(home):
    from subluminal.contracts.call import ToolCall
    from subluminal.contracts.vocabulary import Transport

    shims = [enforcer_in(home, run_id=name) for name in ("a", "a", "b")]
    call = ToolCall(
        server_name="s",
        tool_name="t",
        args={},
        args_hash="0" * 64,
        bytes_in=1,
        transport=Transport.MCP_STDIO,
    )
    ids = [shim.begin(call, b"{}").call_id for shim in shims for _ in range(3)]
    assert len(set(ids)) == 9
    for shim in shims:
        shim.run.leave()
        shim.run.close()
