"""`sub ledgerd`, `sub ledger verify` and `sub ingest`, as a shell sees them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest
from tests.ledger.home import Home

from subluminal.ledger.client import ledgerd as client
from subluminal.ledger.store.database import migrations


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Sub = Callable[..., Ran]


@pytest.fixture
def sub(home: Home) -> Iterator[Sub]:
    def run(*words: str, stdin: bytes = b"") -> Ran:
        ran = subprocess.run(
            [sys.executable, "-m", "subluminal", *words],
            input=stdin,
            capture_output=True,
            env={
                **os.environ,
                "SUB_HOME": home.places.home,
                "SUB_RUNTIME_DIR": home.places.runtime_dir,
            },
            check=False,
        )
        return Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode())

    yield run
    client.stop(home.places)


def test_start_status_ingest_stop(home: Home, sub: Sub, tmp_path: Path) -> None:
    assert sub("ledgerd", "status", "--json") == (1, '{"running":false}\n', "")
    assert sub("ledgerd", "status").out == "ledgerd is not running\n"
    elsewhere = Home(str(tmp_path / "elsewhere"))
    for _ in range(5):
        elsewhere.producer(shim_id=f"s{_}").call()
    data = b"\n".join([*elsewhere.lines(), b"junk"])
    artifact = tmp_path / "events.jsonl"
    artifact.write_bytes(data)

    told = sub("ingest", str(artifact))
    assert told.out == "15 events stored, 0 already known, 1 lines were not events\n"
    assert told.code == 1
    again = sub("ingest", "-", "--json", stdin=data.rpartition(b"\n")[0])
    assert (again.code, json.loads(again.out)) == (
        0,
        {"stored": 0, "known": 15, "quarantined": 0},
    )

    status = json.loads(sub("ledgerd", "status", "--json").out)
    assert status["running"] is True
    assert {"pid", "uptime_s", "backlog_bytes", "events_total"} <= set(status)
    words = sub("ledgerd", "status")
    assert f"ledgerd is running, pid {status['pid']}" in words.out
    assert "1 lines of journals, 5 bytes, were not events" in words.err
    assert json.loads(sub("ledgerd", "start", "--json").out) == {
        "running": True,
        "pid": status["pid"],
        "started": False,
    }
    assert sub("ledgerd", "stop") == (0, "ledgerd stopped\n", "")
    assert json.loads(sub("ledgerd", "stop", "--json").out) == {"running": False, "stopped": False}
    elsewhere.close()


def test_verify_says_yes_or_names_the_first_bad_row(home: Home, sub: Sub) -> None:
    missing = sub("ledger", "verify")
    assert missing.code == 2
    assert missing.err.startswith("error: there is no ledger at")
    producer = home.producer()
    for _ in range(20):
        producer.call()
    home.ingest()
    whole = sub("ledger", "verify")
    assert whole.code == 0
    assert whole.out.startswith("verified 60 events of 1 shim, 20 calls ")
    assert "not signed yet: the last 60 events" in whole.out
    assert json.loads(sub("ledger", "verify", "--run", "run", "--json").out)["holds"] is True
    home.store.connection.execute("UPDATE tool_calls SET decision = 'ALLOW' WHERE id = 13")
    damaged = sub("ledger", "verify")
    assert damaged.code == 1
    assert damaged.out.splitlines()[0] == (
        "tool_calls: call `shim-00000013` of run `run`: `decision` is `ALLOW`; "
        "the events say `BLOCK`"
    )
    assert damaged.err.startswith("error: the ledger was damaged or changed")
    assert json.loads(sub("ledger", "verify", "--json").out)["holds"] is False


def test_verify_proves_an_artifact(home: Home, sub: Sub, tmp_path: Path) -> None:
    producer = home.producer()
    for _ in range(5):
        producer.call()
    artifact = tmp_path / "artifact"
    artifact.mkdir()
    lines = home.lines()
    (artifact / "events.jsonl").write_bytes(b"\n".join(lines[3:]) + b"\n")
    whole = sub("ledger", "verify", "--artifact", str(artifact))
    assert (whole.code, whole.out.partition(" and")[0]) == (0, "verified 12 events of 1 shim")
    lines[7] = lines[7].replace(b'"seq":', b'"seq":1')
    (artifact / "events.jsonl").write_bytes(b"\n".join([*lines[:9], b"junk", *lines[9:]]) + b"\n")
    damaged = sub("ledger", "verify", "--artifact", str(artifact), "--json")
    findings = json.loads(damaged.out)["findings"]
    assert damaged.code == 1
    assert "it is not an event" in findings[0]["message"]
    assert sub("ledger", "verify", "--artifact", str(tmp_path / "no")).code == 2
    assert sub("ledger", "verify", "--artifact", "x", "--run", "y").code == 2


def test_an_unreadable_file_gets_an_error(sub: Sub) -> None:
    told = sub("ingest", "/absent.jsonl")
    assert told == (2, "", "error: cannot read `/absent.jsonl`: no such file or directory\n")


def test_a_missing_extra_is_named(sub: Sub, home: Home) -> None:
    script = (
        "import sys; sys.modules['apsw'] = None\n"
        "from subluminal.cli.main import main; sys.exit(main(['ledgerd', 'start']))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert ran.returncode == 2
    assert b"the ledger needs `apsw`" in ran.stderr
    assert b"subluminal[daemon]" in ran.stderr


def test_the_ledger_of_an_earlier_version_is_migrated_by_whoever_asks(home: Home, sub: Sub) -> None:
    home.producer().call()
    number, sql = migrations()[0]
    connection = apsw.Connection(home.places.ledger)
    connection.execute(sql)
    connection.pragma("user_version", number)
    connection.close()
    assert "has schema 1" in sub("ledger", "verify").err
    ran = sub("query", "calls", "--json")
    assert (ran.code, ran.err, len(ran.out.splitlines())) == (0, "", 1)
    assert sub("ledger", "verify").code == 0


def test_ingest_skips_a_line_that_is_longer_than_any_event(
    home: Home, sub: Sub, tmp_path: Path
) -> None:
    elsewhere = Home(str(tmp_path / "elsewhere"))
    elsewhere.producer().call()
    first, *rest = elsewhere.lines()
    elsewhere.close()
    artifact = tmp_path / "events.jsonl"
    artifact.write_bytes(b"\n".join([first, b"x" * (20 << 20), *rest, b"y" * (9 << 20)]))
    told = sub("ingest", str(artifact))
    assert told.out == "3 events stored, 0 already known, 2 lines were not events\n"
    assert told.err.splitlines() == [
        f"warning: the line at offset {len(first) + 1} has {20 << 20} bytes: longer than any event",
        f"warning: the line at offset {artifact.stat().st_size - (9 << 20)} has {9 << 20} bytes:"
        " longer than any event",
    ]


def test_an_unfinished_line_makes_no_command_wait(home: Home, sub: Sub) -> None:
    """A process died while it wrote; nobody will ever end the line."""
    producer = home.producer()
    producer.call()
    with open(producer.journal.path, "ab") as file:
        file.write(b'{"type":"tool_call_start","v":')
    ran = sub("query", "--json")
    assert (ran.code, ran.err, len(ran.out.splitlines())) == (0, "", 1)
    assert "30 bytes of unfinished lines" in sub("ledgerd", "status").out
