"""What replay reads from a ledger: the order of things, what is left of a record, and how much."""

import gc
import tracemalloc
from collections import deque

import msgspec
import pytest
from tests.adapters.policies import budget, deny, rule, snapshot
from tests.ledger.home import Home
from tests.replay.stage import Stage

from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Env, Layer
from subluminal.ledger.query.recorded_runs import RunReader, RunSetting, run_ids
from subluminal.ledger.query.replaying import LedgerReplay, backtest
from subluminal.policy.replay.comparing import Change
from subluminal.policy.replay.hidden_args import PartialArgs
from subluminal.policy.replay.recorded import RecordedCall, RecordedEnd

USER, REPOSITORY = Layer.USER, Layer.REPOSITORY
EMPTY = snapshot()
SECRET = "ghp_" + "aB3d" * 9


def changes(rows):
    return [row.change.value for row in rows]


def breaker(**fields):
    return rule("breaker", "breaker", {"breaker": {"scope": "run", "on_trip": "BLOCK", **fields}})


def test_ends_come_where_breakers_learnt_of_them(stage: Stage):
    """Another shim's call was decided between a call and its end: the breaker did not know yet."""
    own = snapshot(breaker(error_threshold=1, window_ms=60_000))
    first, second = stage.shim([(USER, own)]), stage.shim([(USER, own)])
    slow = stage.begin(first, "git", "a", {})
    stage.clock.go(1)
    stage.call(second, "b", {})  # its own shim's journal knows nothing of the other's end
    stage.end(first, slow, "ERROR")
    refused = stage.call(second, "c", {})
    assert not refused.is_allowed
    stage.close_shims()
    reader = RunReader(stage.home.reader())
    order = [(type(item).__name__, item.call_id.rpartition("-")[2]) for item in reader.items("run")]
    assert [each for each in order if each[0] == "RecordedCall" or each[1] == "0.1"] == [
        ("RecordedCall", "0.1"),
        ("RecordedCall", "1.1"),
        ("RecordedEnd", "0.1"),
        ("RecordedCall", "1.2"),
    ]
    assert changes(stage.replay(own)[0]) == ["same"] * 3


def test_a_clock_that_is_set_moves_no_window(stage: Stage):
    own = snapshot(
        rule(
            "once",
            "dedupe",
            {"dedupe": {"scope": "run", "window_ms": 1000, "on_duplicate": "BLOCK"}},
        )
    )
    shim = stage.shim([(USER, own)])
    for hours in (0, 5, -9):
        stage.clock.wall_ns += hours * 3_600_000_000_000
        stage.call(shim, "a", {})
    rows, _ = stage.replay(own)
    assert [row.call.decision.said.action for row in rows] == ["ALLOW", "BLOCK", "BLOCK"]
    assert changes(rows) == ["same"] * 3


def test_layers_come_from_the_record(stage: Stage):
    user, repository = snapshot(deny("rm")), snapshot(deny("put", rule_id="no-put"))
    shim = stage.shim([(USER, user), (REPOSITORY, repository)])
    for tool in ("rm", "put", "x"):
        stage.call(shim, tool, {})
    rows, replay = stage.replay(snapshot(deny("x", rule_id="x")), layer=REPOSITORY)
    assert changes(rows) == ["same", "newly_allowed", "newly_blocked"]
    assert not replay.layering.missing


def test_a_policy_that_is_not_in_the_record_is_reported(stage: Stage):
    user, repository = snapshot(deny("rm")), snapshot(deny("put", rule_id="no-put"))
    shim = stage.shim([])
    stage.loaded(shim, [(USER, user), (REPOSITORY, repository)], with_rules=False)
    for tool in ("rm", "put", "x"):
        stage.call(shim, tool, {})
    rows, replay = stage.replay(EMPTY, layer=REPOSITORY)
    assert changes(rows) == ["same", "undetermined", "same"]
    assert replay.layering.missing == {user.policy_hash}


def test_a_reload_ends_with_the_run(stage: Stage):
    before, after = snapshot(deny("rm")), snapshot()
    shim = stage.shim([(USER, before)])
    stage.call(shim, "rm", {})
    stage.loaded(shim, [(USER, after)])
    stage.call(shim, "rm", {})
    assert changes(stage.replay(after)[0]) == ["newly_allowed", "same"]


@pytest.mark.parametrize("record", [{}, {"record": "off"}, {"max_bytes": 12}])
def test_hidden_arguments_make_calls_undetermined(stage: Stage, record):
    """Masked, not recorded, or cut before the key that a rule asks for."""
    shim = stage.shim([], **record)
    stage.call(shim, "a", {"a": 1, "z": f"the key is {SECRET}"})
    by_z = rule("z", "deny", deny("x")["effect"], args={"key_equals": {"z": "prod"}})
    by_a = rule("a", "deny", deny("x")["effect"], args={"key_equals": {"a": 1}})
    rows, _ = stage.replay(snapshot(by_z))
    assert changes(rows) == ["undetermined"]
    assert isinstance(rows[0].call.args, PartialArgs)
    expected = "undetermined" if record.get("record") == "off" else "newly_blocked"
    assert changes(stage.replay(snapshot(by_a))[0]) == [expected]
    assert changes(stage.replay(snapshot(deny("a")))[0]) == ["newly_blocked"]


def test_arguments_that_were_too_large_are_so_again(stage: Stage):
    shim = stage.shim([])
    stage.begin(shim, "git", "a", None, args_stream_hash="ab" * 32)
    stage.begin(shim, "git", "a", None)
    by_arguments = rule("a", "deny", deny("x")["effect"], args={"has_keys": ["a"]})
    rows, _ = stage.replay(snapshot(by_arguments))
    assert changes(rows) == ["newly_blocked"] * 2
    assert {row.now.reason_code for row in rows} == {"EVALUATION_ERROR"}


def test_previews_that_retention_dropped_are_not_guessed(stage: Stage):
    shim = stage.shim([])
    stage.call(shim, "a", {"a": 1})
    stage.close_shims()
    stage.home.store.connection.execute("DELETE FROM previews")
    by_arguments = rule("a", "deny", deny("x")["effect"], args={"has_keys": ["a"]})
    assert changes(stage.replay(snapshot(by_arguments))[0]) == ["undetermined"]


def test_missing_calls_are_counted_and_not_guessed(stage: Stage):
    shim = stage.shim([])
    for tool in ("a", "b"):
        stage.call(shim, tool, {})
    stage.close_shims()
    stage.shim([], run_id="run", shim_id="later")
    late = stage._shims[0]
    stage.call(late, "c", {})
    stage.close_shims()
    connection = stage.home.store.connection
    connection.execute("UPDATE segments SET lines = x'00', codec = 1 WHERE id = 1")
    rows, replay = stage.replay(snapshot(budget(1)))
    assert changes(rows) == ["undetermined"]
    assert replay.tally.unrecorded == 2
    connection.execute("UPDATE segments SET lines = NULL WHERE id = 1")
    assert changes(stage.replay(snapshot(deny("c")))[0]) == ["newly_blocked"]


def test_records_of_earlier_versions_are_replayed_by_the_wall_clock(home: Home):
    """Their events have no monotonic clock, and do not say when breakers learnt."""
    producer = home.producer()
    for status in ("ERROR", "OK", "OK"):
        producer.finish(producer.begin(1, None), status)
    home.ingest()
    watching = snapshot(breaker(error_threshold=1, window_ms=15))
    rows = list(LedgerReplay(home.reader(), watching).rows())
    assert changes(rows) == ["same", "newly_blocked", "same"]


def test_events_of_other_makers_do_not_stop_a_replay(home: Home):
    """No seq, words from the future, halves of calls: what can be decided again is."""
    producer = home.producer()
    producer.call(1, None)
    home.ingest()
    lines = []
    source = {"host_id": "h", "proc_id": "p", "shim_id": "other"}
    envelope = {
        "v": "9",
        "ts": "2026-11-12T00:00:00Z",
        "run_id": "theirs",
        "agent_id": "a",
        "client": "vim",
        "env": "moon",
    }
    ref = {"call_id": "c", "server_name": "git", "tool_name": "push", "args_hash": "0" * 64}
    made = {
        "action": "ALLOW",
        "rule_id": None,
        "severity": "info",
        "explain": {"summary": "", "reason_code": "X"},
    }
    policy = {"policy_id": "none", "policy_version": "0", "policy_hash": "none"}
    bodies = [
        ("tool_call_start", {"call": ref}),
        ("tool_call_decision", {"call": ref, "decision": {**made, "policy": policy}}),
        ("tool_call_end", {"call": ref, "status": "WHO KNOWS"}),
        ("tool_call_end", {"call": ref, "status": "OK", "latency_ms": 1}),
        ("tool_call_start", {"call": {**ref, "call_id": "d"}}),
        (
            "tool_call_decision",
            {"call": {**ref, "call_id": "d"}, "decision": {**made, "action": "SING"}},
        ),
        (
            "tool_call_decision",
            {"call": {**ref, "call_id": "e"}, "decision": {**made, "policy": policy}},
        ),
        ("tool_call_start", {"call": 5}),
        ("approval_decided", {"approval": {"answer": "perhaps"}}),
    ]
    for number, (kind, body) in enumerate(bodies, start=1):
        lines.append(
            msgspec.json.encode(
                {"type": kind, **envelope, "source": {**source, "n": number}, **body}
            )
        )
    connection = home.store.connection
    connection.execute("INSERT INTO shims VALUES (99, 'other', 'theirs', 1, 9, x'00', NULL)")
    connection.execute(
        "INSERT INTO segments VALUES (99, 99, 1, 9, 999, x'00', x'00', 0, 0, ?)",
        (b"\n".join(lines),),
    )
    reader = RunReader(home.reader())
    call, end = reader.items("theirs")
    assert isinstance(call, RecordedCall)
    assert (call.seq, call.identity.env, call.identity.client) == (0, "unknown", "unknown")
    assert isinstance(end, RecordedEnd)
    assert reader.setting("theirs") == RunSetting([], [])


def test_only_calls_since_then_are_told_but_counters_begin_with_the_run(stage: Stage):
    shim = stage.shim([])
    stage.call(shim, "a", {})
    stage.clock.go(60_000)
    since_ms = stage.clock.now().wall_ms
    stage.call(shim, "b", {})
    rows, replay = stage.replay(snapshot(budget(1)), since_ms=since_ms)
    assert [(row.call.tool_name, row.change.value) for row in rows] == [("b", "newly_blocked")]
    assert (replay.tally.runs, replay.tally.calls) == (1, 1)


def test_runs_that_were_not_active_since_then_are_not_read(stage: Stage):
    for name in ("old", "new"):
        stage.call(stage.shim([], run_id=name), "a", {})
        stage.close_shims()
        stage.clock.go(60_000)
    reader = stage.home.reader()
    assert list(run_ids(reader)) == ["old", "new"]
    assert list(run_ids(reader, stage.clock.now().wall_ms - 61_000)) == ["new"]


def test_a_backtest_tells_of_a_change(stage: Stage):
    """`would have allowed 14 past calls, 2 of them writes in prod`"""
    writes = rule(
        "w", "tag", {"tag": {"add_risk_class": ["write_like"]}}, tool_name={"glob": ["put"]}
    )
    before = snapshot(writes, deny("put", "get", rule_id="no"))
    after = snapshot(writes)
    for env, tools in ((Env.PROD, ("put", "put", "get")), (Env.DEV, ("get", "x"))):
        shim = stage.shim([(USER, before)], Identity(env=env), run_id=env.value)
        for tool in tools:
            stage.call(shim, tool, {})
    stage.close_shims()
    reader = stage.home.reader()
    found = backtest(reader, before, after)
    assert found.sentence() == "would have allowed 4 past calls, 2 of them writes in prod"
    assert backtest(reader, after, before).count(Change.NEWLY_BLOCKED) == 4
    assert backtest(reader, before, after, since_ms=stage.clock.now().wall_ms + 1).calls == 0
    ended = snapshot(breaker(error_threshold=1, window_ms=60_000))
    assert not backtest(reader, EMPTY, ended).groups


def test_a_backtest_about_one_tool_leaves_out_the_runs_without_it(stage: Stage):
    before, after = snapshot(deny("put", rule_id="no")), snapshot()
    seen: list[int] = []
    for name, tools in (
        ("one", ("put", "get")),
        ("two", ("get", "get", "get")),
        ("three", ("put",)),
    ):
        shim = stage.shim([(USER, before)], run_id=name)
        for tool in tools:
            stage.call(shim, tool, {})
    stage.close_shims()
    reader = stage.home.reader()
    ((server,),) = reader.execute("SELECT DISTINCT server_name FROM tool_calls").fetchall()
    assert list(run_ids(reader, None, (str(server), "put"))) == ["one", "three"]
    assert list(run_ids(reader, None, ("elsewhere", "put"))) == []
    found = backtest(reader, before, after, tool=(str(server), "put"), watch=seen.append)
    assert (found.calls, found.count(Change.NEWLY_ALLOWED)) == (3, 2)
    assert seen == [2, 3]


def test_memory_does_not_grow_with_the_number_of_runs(home: Home):
    """What a replay holds at its peak is one run's, however many there are."""
    for number in range(60):
        producer = home.producer(f"run{number}", f"shim{number}")
        for call in range(20):
            producer.call(call, None)
        home.ingest()
    candidate = snapshot(
        deny("push"), budget(15), breaker(repeat_threshold=3, repeat_window_ms=9_999)
    )
    reader = home.reader()
    runs = list(run_ids(reader))

    def peak(chosen: list[str]) -> int:
        replay = LedgerReplay(reader, candidate)
        gc.collect()
        tracemalloc.start()
        try:
            deque(replay.rows(chosen), maxlen=0)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(runs[:2])
    assert peak(runs) < 1.5 * peak(runs[:6])


PUSHES = ["git push --force", "git push -f > log", "ls", "touch a", "eval x", "rm *.py"]


def replayed_targets(stage: Stage, own, candidate, **record):
    shim = stage.shim([(USER, own)], **record)
    for line in PUSHES:
        ruling = stage.begin(shim, "@claude", "Bash", {"command": line})
        if ruling.is_allowed:
            stage.end(shim, ruling)
    return changes(stage.replay(candidate)[0])


def no_force(**more):
    return rule(
        "f",
        "deny",
        deny("x")["effect"],
        targets={"argv": {"regex": ["push.* (-f|--force)"]}, **more},
    )


def test_targets_on_record_are_replayed(stage: Stage):
    """Whatever files and links are there now."""
    own = snapshot(rule("o", "deny", deny("x")["effect"], targets={"opaque": True}))
    outside = rule(
        "w", "deny", deny("x")["effect"], targets={"access": ["write"], "path": {"inside": ["."]}}
    )
    assert replayed_targets(stage, own, own) == ["same"] * len(PUSHES)
    rows = changes(stage.replay(snapshot(outside, no_force()))[0])
    assert rows == [
        "newly_blocked",
        "newly_blocked",
        "same",
        "newly_blocked",
        "newly_allowed",
        "newly_blocked",
    ]


def test_targets_that_are_not_on_record_are_read_again_as_far_as_possible(stage: Stage):
    """The directory of the call is not on record: paths and globs cannot be told."""
    rows = replayed_targets(stage, EMPTY, snapshot(no_force()))
    assert rows == ["newly_blocked", "newly_blocked", "same", "same", "same", "undetermined"]
    writes = rule("w", "deny", deny("x")["effect"], targets={"access": ["write"]})
    rows = changes(stage.replay(snapshot(writes))[0])
    assert rows == ["same", "undetermined", "same", "undetermined", "same", "undetermined"]


def test_targets_without_arguments_on_record_are_undetermined(stage: Stage):
    rows = replayed_targets(stage, EMPTY, snapshot(no_force()), record="off")
    assert rows == ["undetermined"] * len(PUSHES)
