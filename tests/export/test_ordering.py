"""Events in an artifact: by call, each shim's in its own order, whenever they were written."""

import itertools
import json

from tests.export.shims import Shim

from subluminal.export.ordering import ordered


def brief(line):
    event = json.loads(line)
    seq = event.get("call", {}).get("seq", "")
    return f"{event['source']['shim_id']}:{event['type']}{seq}"


def run():
    runner, a, b = Shim("runner", server=""), Shim("x-a", "alpha"), Shim("a-b", "beta")
    runner.start_run()
    a.health("spawned")
    b.health("spawned")
    b.call(1)
    a.call(2)
    b.call(3)
    a.health("exited")
    runner.emit("shim_health", health={"state": "killed", "pid": 1})
    runner.end_run()
    return [runner, a, b]


def test_calls_are_in_their_order_across_shims():
    names = [brief(line) for line in ordered(run())]
    assert names == [
        "runner:run_start",
        "x-a:shim_health",
        "a-b:shim_health",
        "a-b:tool_call_start1",
        "a-b:tool_call_decision",
        "a-b:tool_call_end",
        "x-a:tool_call_start2",
        "x-a:tool_call_decision",
        "x-a:tool_call_end",
        "x-a:shim_health",
        "a-b:tool_call_start3",
        "a-b:tool_call_decision",
        "a-b:tool_call_end",
        "runner:shim_health",
        "runner:run_end",
    ]


def test_the_order_in_which_shims_are_found_does_not_matter():
    roads = run()
    orders = {tuple(ordered(order)) for order in itertools.permutations(roads)}
    assert len(orders) == 1


def test_the_end_of_a_call_that_was_handed_over_follows_its_start():
    """Whichever shim comes first by name, and although the second one began no call itself."""
    for names in (("a", "b"), ("b", "a")):
        first, later = Shim(names[0], "alpha"), Shim(names[1], "beta")
        later.health("spawned")
        calls = [first.begin(seq) for seq in (1, 2)]
        for call in reversed(calls):
            later.emit(
                "tool_call_end",
                call=call,
                status="OK",
                latency_ms=1,
                bytes_out=1,
                begun_by=names[0],
                preview={"truncated": False},
            )
        kinds = [brief(line).partition(":")[2] for line in ordered([first, later])]
        assert kinds == [
            "shim_health",
            *("tool_call_start1", "tool_call_decision", "tool_call_start2", "tool_call_decision"),
            *("tool_call_end", "tool_call_end"),
        ]


def test_each_shims_own_order_is_kept():
    lines = list(ordered(run()))
    for road in run():
        assert [
            line for line in lines if road.shim_id == json.loads(line)["source"]["shim_id"]
        ] == (road.lines)


def test_what_is_no_event_is_left_out():
    def road():
        return iter([b"torn {", b"{}", b'{"type":"run_start"}', b"[]"])

    assert list(ordered([road])) == []


def test_lines_that_no_reader_takes_are_left_out():
    """One of them would leave the run without an artifact."""
    shim = Shim("a")
    shim.health("spawned")
    good = list(shim.lines)
    shim.lines += [
        b'{"type":"x","source":{"shim_id":"a"},"z":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"type":"x","source":{"shim_id":"a\xff"}}',
        b'{"type":"x","source":{"shim_id":"a","n":"1"}}',
        b'{"type":"x","source":{"shim_id":"a","prev":null}}',
        b'{"type":"x","source":{"shim_id":"a"},"run_id":3}',
    ]
    assert list(ordered([shim])) == good
