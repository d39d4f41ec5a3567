"""Templates and JSON that are kept for a tool are never used for another call.

`events_of` checks that every line is valid and in its chain.
"""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.policies import rule, snapshot
from tests.adapters.records import calls_of, events_of
from tests.hosts import enforcer_in

from subluminal import canonical
from subluminal.clock import rfc3339
from subluminal.contracts.call import ToolCall
from subluminal.contracts.vocabulary import Status, Transport
from subluminal.core.enforcer import CallEnding
from subluminal.core.records import call_records as records


def recorded(home, calls, *policies):
    """The events of calls that were made and ended one after another."""
    enforcer = enforcer_in(home, *policies)
    for number, (server, name, args, transport, context) in enumerate(calls):
        text = canonical.encode(args)
        call = ToolCall(
            server_name=server,
            tool_name=name,
            args=args,
            args_hash=sha256(text).hexdigest(),
            bytes_in=number,
            transport=transport,
            context=context,
        )
        ruling = enforcer.begin(call, text)
        enforcer.finish(ruling, CallEnding(Status.OK, number, b"100 %b"))
    enforcer.flush()
    enforcer.run.leave()
    enforcer.run.close()
    return calls_of(events_of(home))


def of_tool(name, args=None, server="s", transport=Transport.MCP_STDIO, **context):
    return server, name, args or {"at": "100 %d"}, transport, context


ODD = ["%d", "100%", "%%b", '"q"', "a\nb", "ä", "", "%(x)s"]


def test_names_are_recorded_as_they_are(own_home):
    wanted = [(server, name) for server in ODD for name in ODD]
    made = recorded(own_home, [of_tool(name, server=server) for server, name in wanted])
    for names, events in zip(wanted, made, strict=True):
        assert len(events) == 3
        for event in events:
            assert (event["call"]["server_name"], event["call"]["tool_name"]) == names
    assert made[0][0]["call"]["preview"]["args_preview"] == '{"at":"100 %d"}'
    assert made[0][2]["preview"]["result_preview"] == "100 %b"


def test_a_tool_may_be_called_through_two_doors(own_home):
    doors = [Transport.MCP_STDIO, Transport.UNKNOWN, Transport.MCP_STDIO]
    made = recorded(own_home, [of_tool("t", transport=door) for door in doors])
    assert [events[0]["call"]["transport"] for events in made] == doors


def test_tags_and_context_are_those_of_the_call(own_home):
    always = rule("a", "tag", {"tag": {"add_risk_class": ["net"]}}, tool_name={"glob": ["t"]})
    some = rule("b", "tag", {"tag": {"add_risk_class": ["big"]}}, args={"has_keys": ["x"]})
    calls = [
        of_tool("t"),
        of_tool("t", {"x": 1}),
        of_tool("t", traceparent="00-1"),
        of_tool("t"),
        of_tool("u"),
    ]
    made = [events[0]["call"] for events in recorded(own_home, calls, snapshot(always, some))]
    assert [call.get("tags") for call in made] == [["net"], ["big", "net"], ["net"], ["net"], None]
    assert [call.get("traceparent") for call in made] == [None, None, "00-1", None, None]


@pytest.mark.parametrize("bound", ["_MAX_TOOLS", "_MAX_KEPT_BYTES"])
def test_what_is_kept_is_bounded_and_nothing_else_changes(own_home, monkeypatch, bound):
    monkeypatch.setattr(records, bound, 2)
    names = ["a", "b", "c", "a", "n" * 10_000, "c"]
    made = recorded(own_home, [of_tool(name) for name in names])
    assert [[event["call"]["tool_name"] for event in events] for events in made] == [
        [name] * 3 for name in names
    ]


NEAR = 1_763_193_600_000
moments = st.integers(0, 4_102_444_800_000) | st.integers(NEAR - 3_000, NEAR + 3_000)


@given(st.lists(moments, min_size=1, max_size=8))
def test_timestamps_equal_those_of_the_clock(readings: list[int]) -> None:
    timestamps = records.Timestamps()
    assert [timestamps.at(each).decode() for each in readings] == [rfc3339(r) for r in readings]
