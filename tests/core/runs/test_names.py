"""Ids on which several processes agree: of runs that nothing names, and of machines (shared-runs)."""

import os
from pathlib import Path

import pytest

from subluminal.config.places import Places, places
from subluminal.core.runs.names import host_id, run_id_of


def home(path: Path) -> Places:
    return places({"SUB_HOME": str(path)})


def test_what_names_a_run_in_order(tmp_path: Path) -> None:
    where = home(tmp_path)
    session = {"CLAUDE_CODE_SESSION_ID": "session"}
    assert run_id_of({"SUB_RUN_ID": "given", **session}, where) == "given"
    assert run_id_of(session, where) == "session"
    own = run_id_of({}, where)
    assert own == run_id_of({"SUB_RUN_ID": ""}, where)
    assert len(own) == 36


def test_clients_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    clients = tmp_path / "state" / "clients"
    clients.mkdir(parents=True)
    (clients / "4194303-1-deadbeef").write_text("old")
    (clients / f"{os.getppid()}-1-deadbeef").write_text("same pid, another process")
    run_id = run_id_of({}, home(tmp_path))
    [kept] = clients.iterdir()
    assert kept.read_text() == run_id


def test_a_home_that_keeps_nothing_still_gives_one_name(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    where = home(blocked)
    assert run_id_of({}, where) == run_id_of({}, where)
    assert run_id_of({}, where).startswith(f"client-{os.getppid()}-")
    assert host_id(where) != host_id(where)


def test_a_machine_has_one_id_per_home(tmp_path: Path) -> None:
    assert host_id(home(tmp_path)) == host_id(home(tmp_path))
    assert host_id(home(tmp_path / "other")) != host_id(home(tmp_path))


def test_a_run_id_that_is_not_valid_utf8_can_be_recorded(tmp_path: Path) -> None:
    names = [os.fsdecode(name) for name in (b"r\xff", b"r\xfe")]
    found = [run_id_of({"SUB_RUN_ID": name}, home(tmp_path)) for name in names]
    assert found == [r"r\udcff", r"r\udcfe"]


def test_a_file_that_another_process_is_making_is_left_alone(tmp_path: Path) -> None:
    clients = tmp_path / "state" / "clients"
    clients.mkdir(parents=True)
    living = clients / f"4194303-1-deadbeef.{os.getpid()}-abcd.aside"
    dead = clients / "4194303-1-deadbeef.4194303-abcd.aside"
    living.write_text("half")
    dead.write_text("half")
    run_id_of({}, home(tmp_path))
    assert (living.exists(), dead.exists()) == (True, False)


def test_a_client_that_proc_hides_from_us_still_names_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With hidepid, /proc shows a process of another user to nobody but root."""

    monkeypatch.setattr("subluminal.core.runs.names.start_time", lambda _pid: None)
    where = home(tmp_path)
    assert run_id_of({}, where) == run_id_of({}, where)
