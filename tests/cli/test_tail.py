"""`sub tail`: from the journals, from ledgerd, and over its restart without a gap or a double."""

import contextlib
import json
import select
import signal
import subprocess
import time

import pytest
from tests.cli import recorded, snapshots
from tests.ledger.home import Home
from tests.ledger.process import Ledgerd, wait_until
from tests.requirements import requirement
from tests.shim.household import SUB

from subluminal.clock import now


@pytest.fixture
def home(own_home):
    made = Home(str(own_home))
    yield made
    made.close()


@pytest.fixture
def utc(monkeypatch):
    """Local times are the same everywhere."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_what_was_recorded(sub, home, utc):
    recorded.record(home)
    snapshots.check("tail-pipe", sub("tail", "--no-follow"))
    ran = sub("tail", "--no-follow", terminal=True)
    snapshots.check("tail-terminal", ran)


def test_more_journals_than_files_can_be_open(home, utc):
    for number in range(80):
        producer = home.producer(f"run-{number}", f"shim-{number}", reserve_bytes=0)
        producer.clock_ms += number * 1_000
        producer.call(number)
    ran = subprocess.run(
        ["sh", "-c", 'ulimit -n 32; exec "$@"', "sh", *SUB, "tail", "--no-follow", "--json"],
        capture_output=True,
        check=True,
    )
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(events) == 240
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)


def test_an_empty_home(sub, home):
    told = f"No events are recorded in `{home.places.home}`.\n"
    assert sub("tail", "--no-follow") == (0, "", told)
    assert sub("tail", "--no-follow", "--json") == (0, "", "")
    ran = sub("tail", "--no-follow", "decision:BLOCK")
    assert (
        ran.err == f"No events that match `decision:BLOCK` are recorded in `{home.places.home}`.\n"
    )


def kinds(ran):
    return [json.loads(line)["type"] for line in ran.out.splitlines()]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--decision", "BLOCK"], ["tool_call_decision"]),
        (["--status", "ERROR", "decision:ALLOW"], ["tool_call_end"]),
        (
            ["--run", "run-open", "server:git"],
            ["tool_call_start", "tool_call_decision", "tool_call_end"],
        ),
        (["--run", "run-open", "latency>2"], ["tool_call_end"]),
        (["--server", "nowhere"], []),
        (["--rule", "no-*", "severity:critical"], ["tool_call_decision"]),
        (["--text", "file3", "--run", "run-open"], ["tool_call_start", "tool_call_decision"]),
    ],
)
def test_filters(sub, home, words, expected):
    recorded.record(home)
    assert kinds(sub("tail", "--no-follow", "--json", *words)) == expected


def test_since(sub, home):
    recorded.record(home)
    since = "2026-09-21T14:15:00Z"
    lines = sub("tail", "--no-follow", "--since", since, "--json").out.splitlines()
    assert {json.loads(line)["run_id"] for line in lines} == {"run-open"}


def test_what_a_tool_wrote_is_shown_not_sent(sub, home):
    producer = home.producer("evil", "evil")
    producer.padding = recorded.EVIL
    producer.call(1)
    for terminal in (True, False):
        out = sub("tail", "--no-follow", terminal=terminal).out
        assert not any(char in out for char in "\u202e\r\x07")


class Tail:
    """`sub tail --json` in a process of its own."""

    def __init__(self, *words):
        self.process = subprocess.Popen(
            [*SUB, "tail", "--json", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.events = []

    def read(self, count):
        """Waits for so many events."""
        while len(self.events) < count:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            self.events.append(json.loads(line))

    def keys(self):
        return [(event["source"]["shim_id"], event["source"]["n"]) for event in self.events]

    def stop(self):
        """Ends it as Ctrl-C does; gives the exit code and what was left to read."""
        self.process.send_signal(signal.SIGINT)
        rest, err = self.process.communicate(timeout=20)
        self.events += [json.loads(line) for line in rest.splitlines()]
        assert err == b""
        return self.process.returncode


@pytest.fixture
def tail():
    made = []

    def start(*words):
        made.append(Tail(*words))
        return made[-1]

    yield start
    for each in made:
        each.process.kill()
        each.process.communicate()


@pytest.fixture
def ledgerd(home):
    made = []

    def start():
        made.append(Ledgerd(home.places).ready())
        return made[-1]

    yield start
    for each in made:
        each.close()


def live(home, shim="live"):
    producer = home.producer("live", shim)
    producer.clock_ms = now().wall_ms
    return producer


@requirement("001-16E:tail")
def test_live_without_ledgerd(home, tail):
    producer = live(home)
    producer.run_start()
    follower = tail("--run", "live")
    follower.read(1)
    producer.call(1)
    follower.read(4)
    late = live(home, "late")
    late.call(2)
    follower.read(7)
    assert follower.stop() == 130
    assert follower.keys() == [
        *[("live", n) for n in range(1, 5)],
        *[("late", n) for n in range(1, 4)],
    ]


@requirement("001-16E:tail")
def test_over_a_restart_of_ledgerd(home, tail, ledgerd):
    """Before, between and after: every event once, in order."""
    producer = live(home)
    first = ledgerd()
    producer.call(0)
    first.has_stored(3)
    follower = tail("--run", "live")
    follower.read(3)
    producer.call(1)
    follower.read(6)
    first.process.kill()
    first.process.wait(20)
    producer.call(2)
    follower.read(9)
    second = ledgerd()
    for number in range(3, 30):
        producer.call(number)
    second.has_stored(90)
    follower.read(90)
    second.process.terminate()
    second.process.wait(20)
    producer.call(30)
    follower.read(93)
    assert follower.stop() == 130
    assert follower.keys() == [("live", n) for n in range(1, 94)]


def test_what_came_by_another_road_is_live_too(home, tail, ledgerd, tmp_path):
    """Events that no journal here holds: ledgerd alone knows them."""
    daemon = ledgerd()
    follower = tail()
    elsewhere = Home(str(tmp_path / "elsewhere"))
    producer = live(elsewhere)

    def shown():
        """The stream begins when it begins: say something until it is heard."""
        producer.clock_ms = now().wall_ms + 1_000
        producer.call()
        with open(producer.journal.path, "rb") as file:
            daemon.client.post("/v1/events", file.read())
        return select.select([follower.process.stdout], [], [], 0.1)[0]

    wait_until(shown, "an event from elsewhere")
    follower.read(1)
    elsewhere.close()
    assert follower.events[0]["source"]["shim_id"] == "live"


# What it waits for


@contextlib.contextmanager
def waiting(*words):
    """`sub tail` as a person starts it; it is ended as Ctrl-C does, and says nothing more."""
    process = subprocess.Popen(
        [*SUB, "tail", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    except BaseException:
        process.kill()
        process.communicate()
        raise
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20)[1] == "", "it says so once"


def test_it_says_what_it_waits_for(home, ledgerd):
    with waiting() as process:
        source = "from the journals; ledgerd is not running"
        told = f"Waiting for events in `{home.places.home}` ({source}).\n"
        assert process.stderr.readline() == told
        assert "`sub run -- AGENT`" in process.stderr.readline()
        live(home).call(1)
        assert "ALLOW" in process.stdout.readline()
    ledgerd()
    with waiting("tool:s*", "--decision", "ALLOW") as process:
        assert process.stderr.readline() == (
            "Waiting for events that match `decision:ALLOW tool:s*` in"
            f" `{home.places.home}` (from ledgerd).\n"
        )
        process.stderr.readline()
        live(home, "other").call(1)
        assert "git/status" in process.stdout.readline()


def test_it_is_silent_when_there_is_something_to_show(home):
    live(home).call(1)
    with waiting("--since", "1h") as process:
        assert "ALLOW" in process.stdout.readline()


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"run_start","ts":"2026-11-15T04:00:00.000Z"}',
        b'{"type":"run_start","ts":5}',
        b'{"type":["x"],"ts":"2026-11-15T04:00:00.000Z"}',
        b'{"type":"tool_call_end","ts":"yesterday"}',
        b'{"type":"tool_call_end","ts":"2026-11-15T04:00:00.000Z","source":[1]}',
        b'{"type":"policy_loaded","ts":"2026-11-15T04:00:00.000Z","policy":7}',
        b'{"type":"x","ts":"2026-11-15T04:00:00.000Z","call":[1]}',
        b"[" * 100_000,
        b"\xff\0",
    ],
)
def test_an_odd_line_ends_nothing(sub, home, line):
    producer = home.producer()
    producer.call(1)
    with open(producer.journal.path, "ab") as file:
        file.write(line + b"\n")
    for words in ([], ["--json"], ["decision:ALLOW"]):
        ran = sub("tail", "--no-follow", *words)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out
