"""The query layer finds what a plain loop over all calls finds, in pages that fit together."""

import itertools
from fnmatch import fnmatchcase
from hashlib import sha256

import apsw
import msgspec
import pytest
from tests.ledger.events import ALLOW, BLOCK, HINT, START_MS
from tests.ledger.home import Home

from subluminal.ledger.ingest.rows import BUCKET_MS
from subluminal.ledger.query import calls, events, facets, hints, policies, runs, spans, tools
from subluminal.ledger.query.questions import CallFilter, InvalidQuery, Paging
from subluminal.ledger.query.records import CallRecord
from subluminal.ledger.upkeep.deferred import index_some
from subluminal.timestamps import parse_rfc3339

MINUTE = BUCKET_MS


@pytest.fixture
def full(home: Home) -> Home:
    """Three runs of two shims, over some minutes, with every decision."""
    producers = [home.producer(f"run{n % 3}", f"shim{n}") for n in range(6)]
    for number in range(40):
        for index, producer in enumerate(producers):
            producer.clock_ms += 5_000
            call_id = producer.begin(number * 7 + index)
            if (number, index) not in {(39, 5), (3, 3)}:
                producer.finish(call_id, "ERROR" if number % 9 == 4 else "OK")
        home.ingest()
    while index_some(home.store.connection, START_MS * 2):
        pass
    return home


@pytest.fixture
def reader(full: Home) -> apsw.Connection:
    return full.reader()


def everything(reader: apsw.Connection) -> list[CallRecord]:
    return calls.find_calls(reader, CallFilter(), Paging(limit=1000)).calls


def matches(call: CallRecord, wanted: CallFilter) -> bool:
    """The filter as a plain loop reads it."""
    at = calls_ms(call)
    texts = f"{call.preview.args_preview} {call.preview.result_preview}"
    return all(
        [
            wanted.run in (None, call.run_id),
            wanted.server is None or fnmatchcase(call.server_name, wanted.server),
            wanted.tool is None or fnmatchcase(call.tool_name, wanted.tool),
            wanted.decision in (None, call.decision),
            wanted.status in (None, call.status),
            wanted.rule in (None, call.rule_id),
            wanted.args_hash in (None, call.args_hash),
            wanted.text is None or wanted.text in texts,
            wanted.since_ms is None or at >= wanted.since_ms,
            wanted.until_ms is None or at < wanted.until_ms,
        ]
    )


def calls_ms(call: CallRecord) -> int:
    return parse_rfc3339(call.ts)


def paged(reader: apsw.Connection, wanted: CallFilter, **how: object) -> list[CallRecord]:
    found: list[CallRecord] = []
    cursor = None
    for _ in itertools.count():
        page = calls.find_calls(reader, wanted, Paging(limit=7, cursor=cursor, **how))  # type: ignore[arg-type]
        found += page.calls
        if page.next is None:
            return found
        cursor = page.next
    raise AssertionError


SINCE, UNTIL = START_MS + 40_000, START_MS + 130_000
FILTERS = [
    CallFilter(),
    CallFilter(run="run1"),
    CallFilter(server="git"),
    CallFilter(server="git", tool="push"),
    CallFilter(tool="*_file"),
    CallFilter(server="[fg]*", tool="?ush"),
    CallFilter(server="nothing"),
    CallFilter(decision="BLOCK"),
    CallFilter(decision="BLOCK", status="OK"),
    CallFilter(status="ERROR"),
    CallFilter(decision="REJECT_WITH_HINT", server="fs"),
    CallFilter(decision="BLOCK", tool="status"),
    CallFilter(decision="TERMINATE_RUN"),
    CallFilter(rule="no-push"),
    CallFilter(rule="no-push", status="ERROR"),
    CallFilter(since_ms=SINCE),
    CallFilter(until_ms=UNTIL),
    CallFilter(since_ms=SINCE, until_ms=UNTIL, decision="ALLOW"),
    CallFilter(since_ms=START_MS * 2),
    CallFilter(until_ms=5),
    CallFilter(run="run2", decision="BLOCK", since_ms=SINCE),
    CallFilter(text="file28.py"),
    CallFilter(text="all is well", status="ERROR"),
    CallFilter(run="run0", text="well"),
]


@pytest.mark.parametrize("wanted", FILTERS, ids=repr)
def test_every_filter_finds_what_a_loop_finds(reader: apsw.Connection, wanted: CallFilter) -> None:
    expected = [call for call in everything(reader) if matches(call, wanted)]
    newest = paged(reader, wanted)
    assert sorted(call.id for call in newest) == sorted(call.id for call in expected)
    oldest = paged(reader, wanted, newest_first=False)
    assert [call.id for call in oldest] == [call.id for call in newest][::-1]

    def key(call: CallRecord) -> tuple[int, int]:
        return calls_ms(call), call.id

    assert newest == sorted(newest, key=key, reverse=True)


def test_calls_by_their_arguments(reader: apsw.Connection) -> None:
    some = everything(reader)[17]
    found = calls.find_calls(reader, CallFilter(args_hash=some.args_hash), Paging())
    assert some.id in [call.id for call in found.calls]
    assert {call.args_hash for call in found.calls} == {some.args_hash}


@pytest.mark.parametrize("wanted", [each for each in FILTERS if not each.text], ids=repr)
def test_facets_and_histogram_count_what_the_list_shows(
    reader: apsw.Connection, wanted: CallFilter
) -> None:
    rounded = msgspec.structs.replace(
        wanted,
        since_ms=wanted.since_ms and wanted.since_ms // MINUTE * MINUTE,
        until_ms=wanted.until_ms and -(-wanted.until_ms // MINUTE) * MINUTE,
    )
    if wanted.run is not None:
        rounded = wanted  # one run is counted exactly
    expected = [call for call in everything(reader) if matches(call, rounded)]
    counted = facets.count_facets(reader, wanted)
    assert counted.total == len(expected)
    if wanted.decision is None:
        assert sum(counted.decision.values()) == len(expected)
    for bar_ms in (MINUTE, 3 * MINUTE):
        histogram = facets.count_histogram(reader, wanted, bar_ms)
        assert sum(sum(bar.counts.values()) for bar in histogram.bars) == len(expected)
        assert histogram.bar_ms == bar_ms


def test_a_facet_ignores_its_own_filter(reader: apsw.Connection) -> None:
    """So that a person sees what else could be chosen."""
    counted = facets.count_facets(reader, CallFilter(decision="BLOCK", server="git"))
    assert set(counted.decision) >= {"ALLOW", "BLOCK"}
    assert set(counted.server) == {"fs", "git"}
    assert sum(counted.status.values()) == counted.total


def test_facets_of_a_text(reader: apsw.Connection) -> None:
    listed = calls.find_calls(reader, CallFilter(text='"all is well"'), Paging(limit=1000)).calls
    counted = facets.count_facets(reader, CallFilter(text='"all is well"'))
    assert counted.total == len(listed) == 238
    with pytest.raises(InvalidQuery, match="cannot be filtered by text"):
        facets.count_histogram(reader, CallFilter(text="x"), MINUTE)
    many = apsw.Connection(":memory:")
    many.execute("CREATE TABLE rollups (bucket, decision, calls)")
    many.executemany("INSERT INTO rollups VALUES (?, '', 1)", ((n,) for n in range(1001)))
    with pytest.raises(InvalidQuery, match="more than 1000 bars"):
        facets.count_histogram(many, CallFilter(), MINUTE)


@pytest.mark.parametrize(
    ("text", "count"),
    [("file28.py", None), ("file2*", None), ("NEAR", 0), ('a" OR "b', 0), ("-well", None)],
)
def test_typed_text_is_never_query_syntax(
    reader: apsw.Connection, text: str, count: int | None
) -> None:
    page = calls.find_calls(reader, CallFilter(text=text), Paging())
    assert bool(page.calls) is (count is None)


@pytest.mark.parametrize("text", ["", "   ", "*", '""', "a " * 17])
def test_a_text_that_finds_nothing_is_an_error(reader: apsw.Connection, text: str) -> None:
    with pytest.raises(InvalidQuery):
        calls.find_calls(reader, CallFilter(text=text), Paging())


@pytest.mark.parametrize("cursor", ["x", "-1", "1", "1.2.3", "", "1." + "9" * 30, "1.١"])
def test_a_wrong_cursor_is_refused(reader: apsw.Connection, cursor: str) -> None:
    with pytest.raises(InvalidQuery, match="not a valid cursor"):
        calls.find_calls(reader, CallFilter(), Paging(cursor=cursor))
    with pytest.raises(InvalidQuery, match="out of range"):
        calls.find_calls(reader, CallFilter(), Paging(limit=0))


def test_one_call_with_its_events(full: Home) -> None:
    producer = full.producer("last", "last")
    call_id = producer.call(decision=HINT)
    full.ingest()
    found = calls.show_call(full.reader(), call_id)
    assert found is not None
    assert [event["type"] for event in found.events] == [
        "tool_call_start",
        "tool_call_decision",
        "tool_call_end",
    ]
    assert found.hint is not None
    assert found.hint.suggested_args == {"limit": 10}
    assert calls.show_call(full.reader(), "absent") is None


def test_what_came_of_a_hint(home: Home) -> None:
    followed, retried, pending, gave_up = (
        home.producer(name, name) for name in ("followed", "retried", "pending", "gave_up")
    )
    for producer in (followed, retried, pending, gave_up):
        producer.call(1, HINT)
        producer.call(2, ALLOW)  # of another tool
    followed.call(1, ALLOW)
    retried.call(1, BLOCK)
    gave_up.run_end()
    home.ingest()
    reader = home.reader()
    page = hints.find_hints(reader, None, Paging())
    assert {hint.run_id: hint.outcome for hint in page.hints} == {
        name: name for name in ("followed", "retried", "pending", "gave_up")
    }
    one = hints.find_hints(reader, None, Paging(limit=1))
    two = hints.find_hints(reader, None, Paging(limit=1, cursor=one.next))
    assert [*one.hints, *two.hints] == page.hints[:2]
    assert len(hints.find_hints(reader, "retried", Paging(newest_first=False)).hints) == 1


def test_runs_tools_and_policies(full: Home) -> None:
    producer = full.producer("run9", "shim9")
    producer.clock_ms += 3_600_000
    producer.run_start()
    producer.call()
    producer.run_end()
    full.ingest()
    reader = full.reader()
    page = runs.find_runs(reader, runs.RunFilter(), Paging(limit=2))
    assert [run.run_id for run in page.runs] == ["run9", "run2"]
    rest = runs.find_runs(reader, runs.RunFilter(), Paging(limit=3, cursor=page.next))
    assert [run.run_id for run in rest.runs] == ["run1", "run0"]
    assert rest.next is None
    done = runs.find_runs(reader, runs.RunFilter(status="SUCCEEDED", env="dev"), Paging())
    assert [(run.metadata, run.calls, run.mode) for run in done.runs] == [
        ({"issue": 6}, 1, "guardrails")
    ]
    shown = runs.show_run(reader, "run9")
    assert shown == done.runs[0]
    assert runs.show_run(reader, "absent") is None
    listed = tools.list_tools(reader)
    assert sum(tool.calls for tool in listed) == 241
    assert {tool.server_name for tool in listed} == {"fs", "git"}
    failed = "SELECT count(*) FROM tool_calls WHERE status <> 'OK' AND decision"
    (allowed,), (refused,) = reader.execute(f"{failed} = 'ALLOW' UNION ALL {failed} <> 'ALLOW'")
    assert refused, "a refusal ends as an error, and is none of the tool's"
    assert sum(tool.errors for tool in listed) == allowed
    assert [policy.policy_id for policy in policies.list_policies(reader)] == ["p"]


def test_the_stream_gives_back_every_event_as_it_was_written(full: Home) -> None:
    reader = full.reader()
    position, lines = 0, []
    while (piece := events.read_events(reader, CallFilter(), position)).position > position:
        assert [event.position for event in piece.events] == list(
            range(position + 1, piece.position + 1)
        )
        lines += [event.line for event in piece.events]
        position = piece.position
    assert position == events.last_position(reader)
    assert sorted(lines) == sorted(full.lines())
    middle = events.read_events(reader, CallFilter(), 100)
    assert middle.events[0].position == 101


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (CallFilter(run="run1"), 240),
        (CallFilter(decision="BLOCK"), 24),
        (CallFilter(status="ERROR"), 24),
        (CallFilter(server="g*", decision="BLOCK", rule="no-push"), None),
        (CallFilter(rule="small"), None),
        (CallFilter(since_ms=START_MS * 2), 0),
        (CallFilter(until_ms=START_MS), 0),
        (CallFilter(tool="nothing"), 0),
    ],
)
def test_the_stream_filters(reader: apsw.Connection, wanted: CallFilter, count: int | None) -> None:
    found = events.read_events(reader, wanted, 0).events
    assert len(found) == count if count is not None else found


# In the order of time


@pytest.fixture
def late(home: Home) -> apsw.Connection:
    """Three runs that reached the ledger in another order than they happened."""
    for number in (1, 2, 0):
        producer = home.producer(f"run{number}", f"shim{number}")
        producer.clock_ms += number * 60_000
        producer.run_start()
        for _ in range(3):
            producer.call(1)
            producer.clock_ms += 90_000
        home.ingest()
    while index_some(home.store.connection, START_MS * 2):
        pass
    return home.reader()


@pytest.mark.parametrize(
    "wanted",
    [
        CallFilter(),
        CallFilter(server="git"),
        CallFilter(tool="sta*"),
        CallFilter(decision="ALLOW"),
        CallFilter(text="well"),
        CallFilter(text="well", since_ms=START_MS + 1),
        CallFilter(args_hash=sha256(b'{"path":"/src/file1.py","limit":1}').hexdigest()),
    ],
    ids=repr,
)
@pytest.mark.parametrize("limit", [2, 7])
def test_calls_are_in_the_order_of_time_whenever_they_were_ingested(
    late: apsw.Connection, wanted: CallFilter, limit: int
) -> None:
    times = sorted(START_MS + n * 60_000 + k * 90_000 for n in range(3) for k in range(3))
    for newest_first in (True, False):
        found: list[CallRecord] = []
        cursor = None
        while True:
            paging = Paging(limit=limit, cursor=cursor, newest_first=newest_first)
            page = calls.find_calls(late, wanted, paging)
            found += page.calls
            cursor = page.next
            if cursor is None:
                break
        expected = times[::-1] if newest_first else times
        assert [calls_ms(call) // 30_000 for call in found] == [at // 30_000 for at in expected]


def test_runs_are_in_the_order_of_time(late: apsw.Connection) -> None:
    for newest_first in (True, False):
        first = runs.find_runs(late, runs.RunFilter(), Paging(limit=2, newest_first=newest_first))
        more = Paging(limit=2, newest_first=newest_first, cursor=first.next)
        rest = runs.find_runs(late, runs.RunFilter(), more)
        names = [run.run_id for run in [*first.runs, *rest.runs]]
        assert names == (["run2", "run1", "run0"] if newest_first else ["run0", "run1", "run2"])


def plan(reader: apsw.Connection, sql: str) -> str:
    values = ("x",) * sql.count("?")
    return " ".join(str(row[3]) for row in reader.execute(f"EXPLAIN QUERY PLAN {sql}", values))


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (CallFilter(args_hash="ab" * 32), "calls_by_args (args_hash=?"),
        (CallFilter(), "calls_by_time"),
        (CallFilter(server="git", tool="push"), "calls_by_tool (server_name=? AND tool_name=?"),
        (CallFilter(decision="BLOCK", status="OK"), "calls_by_outcome (decision=? AND status=?"),
        (CallFilter(rule="no-push"), "calls_by_rule (rule_id=?"),
        (CallFilter(run="run0"), "calls_by_run (run_id=?"),
    ],
    ids=repr,
)
def test_the_plan_of_every_question_reads_an_index_in_order(
    full: Home, wanted: CallFilter, index: str
) -> None:
    """Spec 001 section 11.3: an index on args_hash, for dedupe investigations."""
    reader = full.reader()
    asked: list[str] = []
    reader.exec_trace = lambda _cursor, sql, _values: asked.append(sql) or True
    calls.find_calls(reader, wanted, Paging())
    reader.exec_trace = None
    (found,) = [sql for sql in asked if "INDEXED BY" in sql]
    told = plan(reader, found)
    assert index in told
    assert "TEMP B-TREE" not in told


def test_a_text_is_found_in_every_span(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first span holds few calls; a rare word is in the last one, a common one in all."""
    monkeypatch.setattr(spans, "FIRST_CALLS", 3)
    monkeypatch.setattr(spans, "GROWTH", 2)
    producer = home.producer()
    for number in range(40):
        word = "rare" if number in (0, 1, 39) else "common"
        producer.finish(producer.begin(0, text=f'{{"{word}":{number}}}'))
        producer.clock_ms += 0 if number % 4 else 25_000
    home.ingest()
    while index_some(home.store.connection, START_MS * 2):
        pass
    reader = home.reader()
    for text, count in (("rare", 3), ("common", 37), ("absent", 0)):
        for newest_first in (True, False):
            found = paged(reader, CallFilter(text=text), newest_first=newest_first)
            times = [(calls_ms(call), call.id) for call in found]
            assert times == sorted(times, reverse=newest_first)
            assert len(set(times)) == count
