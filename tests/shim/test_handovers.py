"""One call, one record: a door before the shim decides a call, and the shim takes it over.

The first door is a real process (`first_door.py`) with a host of its own, as a hook's is.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
from collections import Counter

import pytest
from tests.processes import WITHIN_S, wait_until
from tests.shim.household import budget, policy
from tests.shim.test_lost_calls import LOST, find, kill_with_warden

from subluminal.config.places import places
from subluminal.core.handovers import Handovers
from subluminal.core.runs.attendance import attending
from subluminal.core.runs.tidying import tidy
from subluminal.ledger.client.roll_call import close_what_died

DOOR = str(pathlib.Path(__file__).with_name("first_door.py"))
RUN = "session-1"
ID = {"claudecode/toolUseId": "toolu_1"}
BREAKER = """\
  - {rule_id: shaky, kind: breaker, enabled: true, severity: warn, match: {tool_name: {glob: [fail]}},
     effect: {breaker: {scope: run, error_threshold: 2, window_ms: 600000, on_trip: BLOCK}}}
  - {rule_id: slow, kind: breaker, enabled: true, severity: warn, match: {tool_name: {glob: [gate]}},
     effect: {breaker: {scope: run, latency_threshold_ms: 4999, latency_count: 1, window_ms: 600000,
              on_trip: BLOCK}}}
"""


class Door:
    """A door in front of the shim: decides calls, offers them, and records or leaves their ends."""

    def __init__(self, household, run=RUN, **env):
        self.process = subprocess.Popen(
            [sys.executable, "-P", DOOR, run],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=household.env(**env),
            cwd=household.cwd,
            text=True,
        )
        self.pid = self.process.pid

    def _ask(self, **words):
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, "the door died"
        return json.loads(answer)

    def decide(self, tool="echo", args=None, call="toolu_1", server="echo", offer=True):
        """Decides a call, and offers it; returns its call_id, or the refusal's reason code."""
        return self._ask(
            do="decide", tool=tool, args=args or {}, call=call, server=server, offer=offer
        )

    def end(self, call_id):
        """Says that a call has ended OK; returns whether it was this door's to record."""
        return self._ask(do="end", call_id=call_id)

    @property
    def open_calls(self):
        return self._ask(do="open")

    def kill(self):
        self.process.kill()
        self.process.wait(WITHIN_S)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(WITHIN_S) == 0
        self.process.stdout.close()


@pytest.fixture
def door(household):
    opened = []

    def start(**options):
        opened.append(Door(household, **options))
        return opened[-1]

    yield start
    for each in opened:
        each.kill()
        each.process.stdin.close()
        each.process.stdout.close()


@pytest.fixture
def shim(household):
    """A shim whose calls may name their run, in the session of the door."""

    def start(*options, run=None, **more):
        more.setdefault("CLAUDE_CODE_SESSION_ID", RUN)
        return household.start(*options, run=run, **more).ready()

    return start


def where(household):
    return places({"SUB_HOME": str(household.home)})


def offers(household):
    return sorted(os.listdir(Handovers(where(household)).offers))


def taken(household):
    return os.listdir(household.home / "state" / "handovers" / "taken")


def counts(household):
    """How many starts, decisions and ends are on record."""
    kinds = [event["type"] for event in household.events()]
    return [kinds.count(f"tool_call_{each}") for each in ("start", "decision", "end")]


def totals(household, run=RUN):
    summary = household.run_end(run)["summary"]
    return summary["calls_total"], summary["errors_total"], summary.get("calls_lost", 0)


def close_all(*parties):
    for each in parties:
        each.close()
        if not isinstance(each, Door):
            each.wait()


def test_one_call_has_one_start_one_decision_and_one_end(household, door, shim):
    household.write_policy(policy(budget(1)))
    first, later = door(), shim()
    call_id = first.decide(args={"x": 1})
    assert later.code("echo", {"x": 1}, ID) == 0
    assert not first.end(call_id), "the shim took it"
    assert first.open_calls == 0
    end = household.wait_event("tool_call_end")
    (start,) = household.events("tool_call_start")
    assert end["call"] == {key: start["call"][key] for key in end["call"]}
    assert end["begun_by"] == start["source"]["shim_id"] != end["source"]["shim_id"]
    assert (start["call"]["transport"], start["call"]["client_call_id"]) == (
        "agent_hook",
        "toolu_1",
    )
    assert end["status"] == "OK"
    assert counts(household) == [1, 1, 1]
    wait_until(lambda: not taken(household), "the shim to forget the call")
    assert later.code("echo", {"x": 2}) != 0, "the budget counted the first call, once"
    close_all(later, first)
    assert totals(household) == (2, 1, 0)


@pytest.mark.parametrize(
    "other",
    [
        {"call": "toolu_2"},
        {"args": {"x": 2}},
        {"tool": "other"},
        {"server": "else"},
        {"call": None},
        {"offer": False},
    ],
    ids=str,
)
def test_anything_but_the_very_same_call_is_decided_anew(household, door, shim, other):
    first, later = door(), shim()
    call_id = first.decide(**{"args": {"x": 1}, **other})
    assert later.code("echo", {"x": 1}, ID) == 0
    household.wait_event("tool_call_end")
    assert counts(household) == [2, 2, 1]
    assert first.end(call_id), "nobody took it"
    assert counts(household) == [2, 2, 2]
    assert not offers(household) if other.get("offer", True) else True
    close_all(later, first)
    assert totals(household) == (2, 0, 0)


def test_a_handover_is_good_for_one_call(household, door, shim):
    first, later = door(), shim()
    first.decide()
    assert [later.code("echo", None, ID) for _ in range(3)] == [0] * 3
    close_all(later, first)
    assert counts(household) == [3, 3, 3]
    assert len({event["call"]["call_id"] for event in household.events("tool_call_end")}) == 3
    assert totals(household) == (3, 0, 0)


def test_two_shims_take_a_call_once(household, door, shim):
    first, *later = door(), shim(), shim()
    for number in range(8):
        first.decide(args={"n": number}, call=f"t{number}")
    asked = [
        (each, each.ask("echo", {"n": number}, {"callId": f"t{number}"}))
        for number in range(8)
        for each in later
    ]
    for each, message_id in asked:
        each.answer(message_id)
    close_all(*later, first)
    assert counts(household) == [16, 16, 16]
    ends = [event["call"]["call_id"] for event in household.events("tool_call_end")]
    assert len(set(ends)) == 16
    assert sum("begun_by" in event for event in household.events("tool_call_end")) == 8


def spoil(path, how):
    if how == "damaged":
        path.write_bytes(path.read_bytes()[:-9] + b"xxxxxxxx}")
    elif how == "not an offer":
        path.write_bytes(b"{}")
    elif how == "a pipe":
        path.unlink()
        os.mkfifo(path)
    elif how == "a directory":
        path.unlink()
        path.mkdir()


@pytest.mark.parametrize("how", ["damaged", "not an offer", "a pipe", "a directory"])
def test_a_file_that_is_not_an_offer_of_ours_is_passed_over(household, door, shim, how):
    first, later = door(), shim()
    first.decide()
    (name,) = offers(household)
    spoil(household.home / "state" / "handovers" / "offers" / name, how)
    assert later.code("echo", None, ID) == 0
    assert household.wait_event("tool_call_end").get("begun_by") is None
    assert counts(household) == [2, 2, 1]


def test_an_offer_past_its_time_is_not_taken(household, door, shim):
    first, later = door(SUB_TEST_AGE_MS="600001"), shim()
    call_id = first.decide()
    assert later.code("echo", None, ID) == 0
    assert first.end(call_id)
    close_all(later, first)
    assert counts(household) == [2, 2, 2]
    assert not any("begun_by" in event for event in household.events("tool_call_end"))


def test_without_ids_identical_calls_are_taken_in_order(household, door, shim):
    """Three identical calls are on their way at once; a fourth is decided anew."""
    first, later = door(), shim()
    ids = [first.decide(call=None) for _ in range(3)]
    assert [later.code("echo") for _ in range(4)] == [0] * 4
    later.close()
    later.wait()
    handed = [e["call"]["call_id"] for e in household.events("tool_call_end") if "begun_by" in e]
    assert handed == ids
    assert [first.end(each) for each in ids] == [False] * 3
    first.close()
    assert counts(household) == [4, 4, 4]
    assert totals(household) == (4, 0, 0)


def test_without_ids_an_offer_is_good_for_half_a_minute(household, door, shim):
    first, later = door(SUB_TEST_AGE_MS="30001"), shim()
    call_id = first.decide(call=None)
    assert later.code("echo") == 0
    assert first.end(call_id)
    wait_until(lambda: counts(household) == [2, 2, 2], "both ends")


def test_a_shim_of_a_fixed_other_run_decides_anew(household, door, shim):
    first, later = door(), shim(run="run-2")
    call_id = first.decide()
    assert later.code("echo", None, ID) == 0
    assert first.end(call_id)
    close_all(later, first)
    assert totals(household, "run-2") == totals(household) == (1, 0, 0)


def test_a_shim_of_no_session_enters_the_run_of_the_call(household, door, shim):
    first = door()
    later = shim(CLAUDE_CODE_SESSION_ID="")
    first.decide()
    assert later.code("echo", None, {"subluminal/toolUseId": "toolu_1"}) == 0
    assert household.wait_event("tool_call_end")["run_id"] == RUN
    close_all(later, first)
    assert counts(household) == [1, 1, 1]


def test_codex_names_the_session_and_the_call_itself(household, door):
    first = door()
    later = household.start(run=None).ready("codex-mcp-client")
    first.decide()
    meta = {"callId": "toolu_1", "x-codex-turn-metadata": {"session_id": RUN}}
    assert later.code("echo", None, meta) == 0
    assert household.wait_event("tool_call_end")["run_id"] == RUN
    close_all(later, first)
    assert counts(household) == [1, 1, 1]
    assert totals(household) == (1, 0, 0)


def test_a_stop_in_between_holds_and_is_on_record(household, door, shim, person):
    first, later = door(), shim()
    call_id = first.decide()
    person("kill", RUN)
    assert later.code("echo", None, ID) != 0
    assert household.executed() == []
    actions = [e["decision"]["action"] for e in household.events("tool_call_decision")]
    assert sorted(actions) == ["ALLOW", "TERMINATE_RUN"]
    assert first.end(call_id), "the refusal is a call of its own"
    wait_until(lambda: counts(household) == [2, 2, 2], "the end of the refusal")


def test_breakers_learn_from_the_end_that_the_shim_records(household, door, shim):
    household.write_policy(policy().replace("rules: []\n", "rules:\n" + BREAKER))
    first, later = door(), shim()
    for number in range(2):
        assert "." in first.decide("fail", {"n": number}, f"t{number}")
        later.call("fail", {"n": number}, {"callId": f"t{number}"})
    wait_until(lambda: len(household.ends()) == 2, "the ends")
    assert first.decide("fail", {"n": 2}, "t2") == "BREAKER_TRIPPED"
    close_all(later, first)
    assert totals(household) == (3, 3, 0)


def test_latency_is_counted_from_the_first_door(household, door, shim):
    household.write_policy(policy().replace("rules: []\n", "rules:\n" + BREAKER))
    first, later = door(SUB_TEST_AGE_MS="5000"), shim()
    first.decide("gate", {"file": "/"})
    assert later.code("gate", {"file": "/"}, ID) == 0
    assert household.wait_event("tool_call_end")["latency_ms"] >= 5000
    assert first.decide("gate", {"file": "/"}, "t2") == "BREAKER_TRIPPED"


def test_calls_of_a_batch_are_decided_anew(household, door, shim):
    first, later = door(), shim()
    call_id = first.decide()
    params = {"name": "echo", "arguments": {}, "_meta": ID}
    call = {"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params}
    later.write(json.dumps([call]).encode() + b"\n")
    household.wait_event("tool_call_decision", call__call_id=call_id)
    wait_until(lambda: counts(household)[1] == 2, "a decision of its own")
    assert first.end(call_id)


def test_further_rounds_of_a_call_that_was_taken_over_cost_nothing(household, door, shim, person):
    household.write_policy(policy(budget(1)))
    first, later = door(), shim()
    call_id = first.decide("ask", {"n": 1})
    params = {"name": "ask", "arguments": {"n": 1}, "_meta": ID}
    for more in ({}, {"requestState": "r"}):
        answer = later.answer(later.send("tools/call", **params, **more))
        assert answer["result"]["resultType"] == "input_required"
    last = {"requestState": "r", "inputResponses": {"done": True}}
    assert "content" in later.answer(later.send("tools/call", **params, **last))["result"]
    assert not first.end(call_id)
    close_all(later, first)
    assert counts(household) == [1, 1, 1]
    assert totals(household) == (1, 0, 0)
    shown = json.loads(person("show", call_id, "--json"))["events"]
    person("ledgerd", "stop")
    assert [event["type"] for event in shown] == [
        "tool_call_start",
        "tool_call_decision",
        *["call_round"] * 2,
        "tool_call_end",
    ]


# Processes that die


def taken_and_hanging(household, door, shim):
    first, later = door(), shim()
    call_id = first.decide("hang")
    later.ask("hang", None, ID)
    wait_until(household.executed, "the call to arrive")
    assert offers(household) == []
    assert len(taken(household)) == 1
    return first, later, call_id


def complete(household, *, runs=1):
    assert close_what_died(where(household)) == runs


def test_a_killed_taker_s_call_is_lost_once(household, door, shim):
    first, later, call_id = taken_and_hanging(household, door, shim)
    kill_with_warden(household, later)
    assert not first.end(call_id)
    complete(household, runs=0)
    assert household.ends() == [LOST]
    (end,) = household.events("tool_call_end")
    assert end["call"]["call_id"] == call_id
    assert end["begun_by"] == household.events("tool_call_start")[0]["source"]["shim_id"]
    assert taken(household) == []
    complete(household, runs=0)
    first.close()
    assert counts(household) == [1, 1, 1]
    assert totals(household) == (1, 1, 1)
    assert household.status(RUN) == "FAILED"


def test_a_taker_killed_after_the_end_has_lost_nothing(household, door, shim):
    first, later = door(), shim()
    call_id = first.decide()
    assert later.code("echo", None, ID) == 0
    wait_until(lambda: not taken(household), "the end on disk")
    kill_with_warden(household, later)
    complete(household, runs=0)
    assert not first.end(call_id)
    first.close()
    assert household.ends() == [("OK", None)]
    assert household.status(RUN) == "SUCCEEDED"


def test_a_first_door_killed_before_the_take_has_lost_the_call(household, door, shim):
    first = door()
    first.decide()
    first.kill()
    complete(household)
    assert offers(household) == []
    assert household.ends() == [LOST]
    later = shim()
    assert later.code("echo", None, ID) == 0
    close_all(later)
    assert counts(household) == [2, 2, 2]
    assert totals(household) == (2, 1, 1)


def test_a_first_door_killed_after_the_take_leaves_the_end_to_the_shim(household, door, shim):
    first, later = door(), shim()
    gate = household.tmp_path / "open"
    first.decide("gate", {"file": str(gate)})
    asked = later.ask("gate", {"file": str(gate)}, ID)
    wait_until(household.executed, "the call to arrive")
    first.kill()
    complete(household, runs=0)
    assert household.ends() == []
    gate.touch()
    later.answer(asked)
    household.wait_event("tool_call_end")
    close_all(later)
    assert household.ends() == [("OK", None)]
    assert totals(household) == (1, 0, 0)


def test_a_first_door_killed_after_the_end_has_nothing_to_end(household, door, shim):
    first, later = door(), shim()
    for number in range(3):
        first.decide(args={"n": number}, call=f"t{number}")
        assert later.code("echo", {"n": number}, {"callId": f"t{number}"}) == 0
    wait_until(lambda: not taken(household) and len(household.ends()) == 3, "the ends")
    first.decide("hang", call="t9")
    first.kill()
    complete(household, runs=0)
    complete(household, runs=0)
    close_all(later)
    assert sorted(household.ends()) == [LOST, *[("OK", None)] * 3]
    assert totals(household) == (4, 1, 1)


@pytest.mark.parametrize("order", [0, 1])
def test_both_doors_killed_end_the_call_once(household, door, shim, order):
    first, later, call_id = taken_and_hanging(household, door, shim)
    for number in (order, 1 - order):
        if number == 0:
            first.kill()
        else:
            kill_with_warden(household, later)
    assert close_what_died(where(household)) > 0
    assert household.ends() == [LOST]
    assert [e["call"]["call_id"] for e in household.events("tool_call_end")] == [call_id]
    assert totals(household) == (1, 1, 1)
    assert taken(household) == offers(household) == []


# What is kept of it


def ledger_of(person, *words):
    return [json.loads(line) for line in person(*words, "--json").splitlines()]


@pytest.fixture
def recorded(household, door, shim, person):
    """A session with calls that were handed over, and calls that were not."""
    path = household.write_policy(policy(budget(11)).rstrip("\n") + "\n" + BREAKER)
    first, later = door(), shim()
    assert first.end(first.decide("Bash", {"command": "ls"}, "t9", server="@claude"))
    tools = ["echo", "fail", "echo", "fail", "fail", "echo"]
    for number, tool in enumerate(tools):
        decided = first.decide(tool, {"n": number}, f"t{number}")
        if "." in decided:
            later.call(tool, {"n": number}, {"callId": f"t{number}"})
        later.call("echo", {"own": number})
    close_all(later, first)
    yield path
    person("ledgerd", "stop")


def test_the_ledger_joins_verifies_and_rebuilds(household, recorded, person):
    calls = ledger_of(person, "query", "calls", "--limit", "100")
    assert len(calls) == counts(household)[0]
    assert all(call["status"] and call["decision"] for call in calls)
    hooked = [call for call in calls if call["transport"] == "agent_hook"]
    assert len(hooked) == 7
    ends = {e["call"]["call_id"]: e for e in household.events("tool_call_end")}
    for call in calls:
        end = ends[call["call_id"]]
        assert (call["status"], call["latency_ms"]) == (end["status"], end["latency_ms"])
    handed = next(each for each in hooked if "begun_by" in ends[each["call_id"]])
    shown = json.loads(person("show", handed["call_id"], "--json"))
    kinds = [event["type"] for event in shown["events"]]
    assert kinds == ["tool_call_start", "tool_call_decision", "tool_call_end"]
    (run,) = ledger_of(person, "query", "runs")
    assert run["calls"] == len(calls)
    summary = json.loads(person("export", "run", RUN, "--json"))
    allowed = [call for call in calls if call["decision"] == "ALLOW"]
    assert sum(summary["statuses"].values()) == len(allowed)
    person("ledgerd", "stop")
    assert "damage" not in person("ledger", "verify")
    person("ledger", "rebuild")
    person("ledger", "verify")
    assert ledger_of(person, "query", "calls", "--limit", "100") == calls


def test_a_handed_over_session_replays_without_a_difference(household, recorded, person):
    *rows, last = ledger_of(person, "policy", "replay", "--policy", str(recorded), "--all")
    assert [row for row in rows if row["change"] != "same"] == []
    assert last["summary"]["calls"] == counts(household)[0]
    codes = {row["was"]["reason_code"] for row in rows}
    assert {"BREAKER_TRIPPED", "BUDGET_EXCEEDED"} <= codes


def test_tidying_leaves_what_a_living_door_offers(household, door, shim):
    first, gone = door(), door(run="session-2")
    first.decide()
    gone.decide(call="toolu_2")
    gone.close()
    assert len(offers(household)) == 2
    for name in offers(household):
        os.utime(household.home / "state" / "handovers" / "offers" / name, (0, 0))
    tidy(where(household))
    assert len(offers(household)) == 1
    assert shim().code("echo", None, ID) == 0
    assert household.wait_event("tool_call_end")["begun_by"]


@pytest.mark.parametrize("seed", range(8))
def test_whoever_is_killed_whenever_each_call_ends_once(household, door, shim, seed):
    """Doors are killed in the middle of a burst; then many processes complete the record at once."""
    chance = random.Random(seed)
    first, later = door(), shim()
    victims = [(first,), (later,), (first, later)][seed % 3]
    decided = []
    for number in range(chance.randrange(3, 30)):
        decided.append(first.decide(args={"n": number}, call=f"t{number}"))
        if chance.random() < 0.8:
            later.ask("echo", {"n": number}, {"callId": f"t{number}"})
    if chance.random() < 0.5:
        later.swallowed()
    for victim in victims:
        if victim is first:
            first.kill()
        else:
            kill_with_warden(household, later)
    finders = [find(household, victim.pid) for victim in victims for _ in range(3)]
    if first not in victims:
        for call_id in decided:
            first.end(call_id)
        first.close()
    if later not in victims:
        close_all(later)
    assert [finder.wait(WITHIN_S) for finder in finders] == [0] * len(finders)
    close_what_died(where(household))
    ends = Counter(event["call"]["call_id"] for event in household.events("tool_call_end"))
    starts = [event["call"]["call_id"] for event in household.events("tool_call_start")]
    assert ends == Counter(starts)
    assert set(decided) <= set(starts)
    lost = [end for end in household.ends() if end == LOST]
    assert totals(household) == (len(starts), len(lost), len(lost))
    assert taken(household) == offers(household) == []
    assert attending(where(household)) == []
