"""`sub doctor`: a sound home, and every kind of trouble it tells apart."""

import json
import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest
from tests.cli import snapshots
from tests.ledger.home import Home
from tests.ledger.process import Ledgerd
from tests.shim.household import SUB, policy

from subluminal.config.places import Places, make_private_dir
from subluminal.operator.doctor import policies
from subluminal.operator.doctor.checks import Check

NAMES = [
    "versions",
    "libraries",
    "sqlite",
    "home",
    "permissions",
    "settings",
    "disk",
    "reports",
    "ledgerd",
    "sockets",
    "backlog",
    "ledger",
    "orphans",
    "runs",
    "policy",
    "self-test",
    "kill switch",
    "secrets",
    "clients",
]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """No client's files, and no repository's policy."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checks(ran):
    return {check["name"]: check for check in json.loads(ran.out)["checks"]}


def test_a_sound_home(sub, own_home, elsewhere):
    ran = sub("doctor", "--json")
    found = checks(ran)
    assert [name for name, check in found.items() if not check["ok"]] == []
    assert (ran.code, ran.err, list(found)) == (0, "", NAMES)
    assert set(found["home"]) == {"name", "ok", "detail", "hint"}
    assert not own_home.exists(), "looking changes nothing"


def test_the_screen(sub, own_home, elsewhere, monkeypatch):
    def some(_places):
        yield Check("home", True, "`~/.subluminal`")
        yield Check("sockets", False, "`/run/\x1b[2Jx` belongs to another user", "set another")

    monkeypatch.setattr("subluminal.cli.commands.doctor.all_checks", lambda: (some,))
    snapshots.check("doctor-pipe", sub("doctor"))
    snapshots.check("doctor-terminal", sub("doctor", terminal=True))
    monkeypatch.setattr("subluminal.cli.commands.doctor.all_checks", lambda: ())
    assert sub("doctor") == (0, "\nAll checks passed.\n", "")


def test_troubles(sub, own_home, elsewhere):
    for name in ("", "state", "journal", "reports", "run"):
        make_private_dir(os.path.join(own_home, name))
    (own_home / "journal").chmod(0o755)
    (own_home / "config.toml").write_text("[ledgr]\n")
    (own_home / "reports" / "bug-1.txt").write_text("x")
    (own_home / "policy.yaml").write_text("rules: 7\n")
    ran = sub("doctor", "--json")
    found = checks(ran)
    failed = [name for name, check in found.items() if not check["ok"]]
    assert ran.code == 1
    assert failed == ["permissions", "settings", "reports", "policy (user)"]
    assert all(found[name]["hint"] for name in failed)
    assert "drwxr-xr-x" in found["permissions"]["detail"]


def test_a_policy_in_force_is_named(sub, own_home, elsewhere):
    own_home.mkdir(mode=0o700)
    (own_home / "policy.yaml").write_text(policy(policy_id="mine"))
    assert checks(sub("doctor", "--json"))["policy (user)"]["detail"].startswith(
        "mine 1, guardrails"
    )


def test_the_self_test_notices_a_shim_that_denies_nothing(monkeypatch, tmp_path):
    allow = policies._DENY_ALL.replace("kind: deny", "kind: allow").replace("BLOCK,", "ALLOW,")
    monkeypatch.setattr(policies, "_DENY_ALL", allow)
    (check,) = policies.check_deny(Places(str(tmp_path), str(tmp_path)))
    assert not check.ok
    assert check.detail == "a denied call was not refused"


def test_a_run_that_nobody_closed_is_closed(sub, own_home, elsewhere):
    """The shim and its warden are gone at once; whoever looks first writes the end."""
    script = (
        "import os,sys;from subluminal.operator.running.record import RunRecord;"
        "from subluminal.wiring import open_host;"
        "from subluminal.operator.running.stamping import Wishes,stamp;"
        "from subluminal.config.places import places;"
        "s=stamp(Wishes(),['agent'],os.environ,'/');"
        "RunRecord.open(open_host,places(os.environ),s,None,'/');print(s.run_id,flush=True);os._exit(9)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    run_id = ran.stdout.strip()
    assert (
        checks(sub("doctor", "--json"))["runs"]["detail"] == "closed 1 run whose processes had died"
    )
    assert checks(sub("doctor", "--json"))["runs"]["detail"] == "no run was left open"
    (end,) = [
        json.loads(line)
        for line in sub("tail", "--no-follow", "--run", run_id, "--json").out.splitlines()
        if '"run_end"' in line
    ]
    assert end["run"]["status"] == "FAILED"
    assert end["run"]["reason"].endswith("died without closing its runs")


def test_ledgerd_is_asked(sub, own_home, elsewhere):
    subprocess.run([*SUB, "ledgerd", "start", "--no-http"], check=True, stdout=subprocess.DEVNULL)
    try:
        found = checks(sub("doctor", "--json"))
    finally:
        subprocess.run([*SUB, "ledgerd", "stop"], check=True, stdout=subprocess.DEVNULL)
    assert found["ledgerd"]["ok"]
    assert found["backlog"]["detail"] == "0 B of journals to read"
    assert "events" in found


# The ledger


@pytest.fixture
def ledger(own_home):
    """A home with a ledger of some calls."""
    home = Home(str(own_home))
    producer = home.producer()
    for _ in range(3):
        producer.call()
    home.ingest()
    home.close()
    return home.places.ledger


def of_ledger(sub):
    return checks(sub("doctor", "--json"))["ledger"]


def test_a_sound_ledger(sub, elsewhere, ledger):
    found = of_ledger(sub)
    assert found["ok"]
    assert found["detail"].startswith("3 calls in ")


def test_a_ledger_that_is_not_a_database(sub, elsewhere, ledger):
    Path(ledger).write_bytes(b"not a database" * 1_000)
    found = of_ledger(sub)
    assert not found["ok"]
    assert "file is not a database" in found["detail"]
    assert found["hint"] == (
        "restore it from a backup, or move the file away: ledgerd then reads the journals that are left,"
        " and `sub ledger verify` keeps reporting the loss"
    )


def test_a_ledger_with_a_page_of_rubbish(sub, elsewhere, ledger):
    """In a table that no other check reads."""
    connection = apsw.Connection(ledger)
    sql = "SELECT rootpage FROM sqlite_master WHERE name = 'previews'"
    ((number,),) = connection.execute(sql)
    connection.close()
    with open(ledger, "r+b") as file:
        file.seek((number - 1) * 8_192)
        file.write(b"\xa5" * 8_192)
    found = of_ledger(sub)
    assert not found["ok"]
    assert "move the file away" in found["hint"]


def test_a_ledger_that_another_program_has_locked(sub, elsewhere, ledger, monkeypatch):
    monkeypatch.setattr("subluminal.operator.doctor.ledger._LOCK_MS", 20)
    other = apsw.Connection(ledger)
    other.execute("BEGIN IMMEDIATE")
    found = of_ledger(sub)
    other.close()
    assert not found["ok"]
    assert "database is locked" in found["detail"]
    assert found["hint"] == "another process has the ledger locked; only ledgerd may write it"


@pytest.mark.parametrize(("version", "ok"), [(1, True), (999, False)])
def test_a_ledger_of_another_version(sub, elsewhere, ledger, version, ok):
    other = apsw.Connection(ledger)
    other.pragma("user_version", version)
    other.close()
    assert of_ledger(sub)["ok"] is ok


def test_damage_in_journals_is_told(sub, own_home, elsewhere):
    home = Home(str(own_home))
    home.producer().call()
    with open(home.producer("bad", "bad").journal.path, "ab") as file:
        file.write(b"rubbish\n" * 3)
    daemon = Ledgerd(home.places).ready()
    try:
        found = checks(sub("doctor", "--json"))["events"]
        told = sub("ledgerd", "status")
    finally:
        daemon.close()
        home.close()
    assert not found["ok"]
    assert "3 lines (24 B) were not events" in found["detail"]
    assert "warning: 3 lines of journals, 24 bytes, were not events" in told.err
    assert "bad/bad.jsonl at 16, 8 bytes: not an event" in told.err
