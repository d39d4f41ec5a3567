"""The filter language: what it reads, where it points, and that SQL and memory agree on it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.events import ALLOW, BLOCK, HINT
from tests.ledger.home import Home

from subluminal.ledger.filter.fields import CALL_FIELDS, RUN_FIELDS
from subluminal.ledger.filter.language import (
    InvalidFilter,
    Term,
    format_filter,
    make_term,
    parse_filter,
)
from subluminal.ledger.filter.matching import Passing, matches
from subluminal.ledger.filter.values import InvalidValue
from subluminal.ledger.query import calls, facets, hints, runs
from subluminal.ledger.query.questions import Paging, RunFilter, call_filter
from subluminal.ledger.query.records import CallRecord
from subluminal.ledger.upkeep.deferred import index_some
from subluminal.timestamps import parse_rfc3339

NOW = 1_790_000_000_000


def parse(text, fields=CALL_FIELDS):
    return parse_filter(text, now_ms=NOW, fields=fields)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", ()),
        ("  ", ()),
        ("decision:block", (Term("decision", ":", ("BLOCK",)),)),
        ("decision=BLOCK", (Term("decision", ":", ("BLOCK",)),)),
        ("-server:git*,fs", (Term("server", ":", ("git*", "fs"), True),)),
        ("latency>500", (Term("latency", ">", (500,)),)),
        ("latency>=1.5s", (Term("latency", ">=", (1500,)),)),
        ("bytes_out<2k", (Term("bytes_out", "<", (2048,)),)),
        ('text:"rm -rf"', (Term("text", ":", ("rm -rf",)),)),
        ('rm "a \\" b"', (Term("text", ":", ("rm",)), Term("text", ":", ('a " b',)))),
        ('tool:a"b c",d', (Term("tool", ":", ("ab c", "d")),)),
        ("since:2h", (Term("since", ">=", (NOW - 7_200_000,)),)),
        ("until:1970-01-01T00:00:01Z", (Term("until", "<", (1000,)),)),
        ("status:unknown", (Term("status", ":", ("UNKNOWN",)),)),
        ("decision!=ALLOW", (Term("decision", ":", ("ALLOW",), True),)),
        ("-word", (Term("text", ":", ("word",), True),)),
    ],
)
def test_reads(text, terms):
    assert parse(text) == terms


@pytest.mark.parametrize(
    ("text", "position", "message", "hint"),
    [
        ("decison:BLOCK", 0, "unknown field `decison`", "did you mean `decision`?"),
        ("a decision:BLOK", 11, "unknown decision `BLOK`", "did you mean `BLOCK`?"),
        ("server:", 7, "`server` needs a value", "such as `server:git*`"),
        ("server: x", 7, "`server` needs a value", "such as `server:git*`"),
        ("server:a,", 9, "`server` needs a value", "such as `server:git*`"),
        ("latency>fast", 8, "`fast` is not a number", "such as `latency>500`"),
        ("tool>5", 4, "`tool` is not a number", "write `tool:…`"),
        ('text:"rm', 5, "this quote is not closed", None),
        ('a "b', 2, "this quote is not closed", None),
        (",", 0, "unexpected `,`", "put the value in quotes"),
        ("since:soon", 6, "`soon` is not a time", None),
        ('""', 0, "the text to search for is empty", None),
    ],
)
def test_points_at_the_character(text, position, message, hint):
    with pytest.raises(InvalidFilter) as caught:
        parse(text)
    assert caught.value.position == position
    assert str(caught.value) == f"filter, character {position + 1}: {message}"
    assert hint is None or caught.value.hint == hint
    line, mark = caught.value.pointed()
    assert line == text
    assert mark.index("^") == position


def test_points_within_a_long_filter():
    text = "server:x " * 20 + "desicion:BLOCK"
    with pytest.raises(InvalidFilter) as caught:
        parse(text)
    line, mark = caught.value.pointed()
    assert len(line) <= 70
    assert line[mark.index("^") :].startswith("desicion")


def test_bounds():
    with pytest.raises(InvalidFilter, match="more than 32 terms"):
        parse("a " * 40)
    with pytest.raises(InvalidFilter, match="longer than 4096"):
        parse("a" * 5000)


def test_runs_have_fields_of_their_own():
    assert parse("status:running calls>3", RUN_FIELDS)[0].values == ("RUNNING",)
    with pytest.raises(InvalidFilter, match="this word has no field"):
        parse("word", RUN_FIELDS)
    with pytest.raises(InvalidFilter, match="unknown field `tool`"):
        parse("tool:x", RUN_FIELDS)


def test_a_flag_is_a_term():
    assert make_term("decision", "block,throttle", now_ms=NOW).values == ("BLOCK", "THROTTLE")
    assert make_term("server", "a,b", now_ms=NOW).values == ("a,b",)
    with pytest.raises(InvalidValue):
        make_term("status", "x", now_ms=NOW)


names = st.text(min_size=1, max_size=12).filter(lambda text: text.strip() and "\0" not in text)
numbers = st.integers(0, 10**9)
terms = st.one_of(
    st.builds(
        Term,
        st.sampled_from(["server", "tool", "rule", "run"]),
        st.just(":"),
        st.lists(names, min_size=1, max_size=3).map(tuple),
        st.booleans(),
    ),
    st.builds(
        Term,
        st.sampled_from(["latency", "seq"]),
        st.sampled_from([":", "<", ">", ">=", "<="]),
        st.tuples(numbers),
        st.booleans(),
    ),
    st.builds(Term, st.just("text"), st.just(":"), st.tuples(names), st.booleans()),
    st.builds(Term, st.just("since"), st.just(">="), st.tuples(st.integers(0, 4 * 10**12))),
    st.builds(Term, st.just("decision"), st.just(":"), st.just(("BLOCK", "ALLOW"))),
)


@given(st.lists(terms, max_size=6).map(tuple))
def test_what_is_written_reads_back(wanted):
    assert parse(format_filter(wanted)) == wanted


@given(st.text(max_size=40))
def test_anything_is_a_filter_or_a_clear_error(text):
    problems: list[InvalidFilter] = []
    try:
        parse(text)
    except InvalidFilter as problem:
        problems.append(problem)
    for problem in problems:
        assert 0 <= problem.position <= len(text)
        assert len(problem.pointed()) == 2


@pytest.fixture
def reader(home: Home):
    """Two runs with every decision; one call of each has no end."""
    for number in range(2):
        producer = home.producer(f"run{number}", f"shim{number}")
        producer.run_start()
        for count in range(24):
            producer.clock_ms += 1_000
            call_id = producer.begin(count, (ALLOW, ALLOW, BLOCK, HINT)[count % 4 - number])
            if count != 20:
                producer.finish(call_id, "ERROR" if count % 7 == 3 else "OK")
    home.ingest()
    while index_some(home.store.connection, 2 * NOW):
        pass
    return home.reader()


def facts(call: CallRecord):
    is_open = call.status is None and call.decision == "ALLOW"
    return {
        "run": call.run_id,
        "server": call.server_name,
        "tool": call.tool_name,
        "decision": call.decision,
        "status": "UNKNOWN" if is_open else call.status,
        "rule": call.rule_id,
        "reason": call.reason_code,
        "severity": call.severity,
        "latency": call.latency_ms,
        "seq": call.seq,
        "agent": "agent",
        "call": call.call_id,
        "at": parse_rfc3339(call.ts),
        "text": f"{call.preview.args_preview}\n{call.preview.result_preview}",
    }


@pytest.mark.parametrize(
    "text",
    [
        "decision:BLOCK",
        "decision:BLOCK,REJECT_WITH_HINT",
        "-decision:ALLOW",
        "server:g*",
        "-server:g* tool:[!r]*",
        "status:UNKNOWN",
        "status:OK,UNKNOWN",
        "run:run1 status:UNKNOWN",
        "decision:ALLOW status:ERROR",
        "latency>2",
        "latency<3",
        "latency:3 seq>=10 seq<14",
        "rule:no-*",
        "reason:DENYLIST_MATCH",
        "agent:agent -run:run0",
        "agent:other",
        "text:file5",
        '"all is well"',
        '"well is all"',
        "-text:file5 server:git",
        "file1*",
        "text:file5 text:limit",
        "since:2026-09-21T13:46:50Z until:2026-09-21T13:47:00Z",
        "call:shim0-00000003",
    ],
)
def test_sql_and_memory_agree(reader, text):
    everything = calls.find_calls(reader, call_filter(()), Paging(limit=1000)).calls
    wanted = parse(text)
    found = calls.find_calls(reader, call_filter(wanted), Paging(limit=1000)).calls
    expected = [call.call_id for call in everything if matches(wanted, facts(call))]
    assert sorted(call.call_id for call in found) == sorted(expected)
    counted = facets.count_facets(reader, call_filter(wanted))
    if not any(term.field in ("since", "until") or "UNKNOWN" in term.values for term in wanted):
        assert counted.total == len(expected), "facets stand beside the same list"


def test_hints_and_runs_take_filters(reader):
    everything = hints.find_hints(reader, None, Paging()).hints
    some = hints.find_hints(reader, None, Paging(), parse("run:run1")).hints
    assert 0 < len(some) < len(everything)
    wanted = RunFilter(terms=parse("run:*1 status:running", RUN_FIELDS))
    assert [run.run_id for run in runs.find_runs(reader, wanted, Paging()).runs] == ["run1"]


def test_the_scoreboard_counts_by_decision(reader):
    board = runs.find_scores(reader, RunFilter(), Paging()).runs
    assert [score.run.run_id for score in board] == ["run1", "run0"]
    for score in board:
        assert sum(score.decisions.values()) == 24
        assert score.decisions == {"ALLOW": 12, "BLOCK": 6, "REJECT_WITH_HINT": 6}
        assert score.errors >= 1
        assert score.worst_severity == "info"
        assert score.duration_ms > 0
    assert runs.find_scores(reader, RunFilter(agent="none"), Paging()).runs == []


def event(kind, number=1, **more):
    envelope = {"type": kind, "ts": "2026-09-21T13:46:50.000Z", "run_id": "r", "agent_id": "a"}
    return {**envelope, "call": {"call_id": f"c{number}", "server_name": "git"}, **more}


def a_call(number, action, status):
    """The three events of one call."""
    explain = {"reason_code": "R", "summary": "s"}
    return [
        event("tool_call_start", number),
        event("tool_call_decision", number, decision={"action": action, "explain": explain}),
        event("tool_call_end", number, status=status, latency_ms=7),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["run_start", "tool_call_start", "tool_call_decision", "tool_call_end"]),
        ("agent:a", ["run_start", "tool_call_start", "tool_call_decision", "tool_call_end"]),
        ("server:git", ["tool_call_start", "tool_call_decision", "tool_call_end"]),
        ("decision:ALLOW", ["tool_call_decision"]),
        ("decision:ALLOW status:ERROR", ["tool_call_end"]),
        ("decision:BLOCK status:ERROR", []),
        ("decision!=BLOCK latency<8", ["tool_call_end"]),
    ],
)
def test_a_live_call_shows_where_it_is_decided(text, expected):
    passing = Passing(parse(text))
    start = {key: value for key, value in event("run_start").items() if key != "call"}
    events = [start, *a_call(1, "ALLOW", "ERROR")]
    assert [one["type"] for one in events if passing.takes(one)] == expected


def test_calls_that_never_end_are_forgotten_in_time(monkeypatch):
    monkeypatch.setattr("subluminal.ledger.filter.matching.MAX_CALLS", 3)
    passing = Passing(parse("decision:ALLOW status:OK"))
    for number in range(5):
        start, decision, _ = a_call(number, "ALLOW", "OK")
        assert not passing.takes(start)
        assert not passing.takes(decision)
    ends = [a_call(number, "ALLOW", "OK")[2] for number in range(5)]
    assert [passing.takes(end) for end in ends] == [False, False, True, True, True]
