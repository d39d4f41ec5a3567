"""Reading /proc, with and without its `children` file."""

import os
import subprocess

import pytest

from subluminal.system import proc
from subluminal.system.proc import descendants, process


def test_a_name_with_parentheses_and_control_characters_does_not_shift_the_fields(
    tmp_path, monkeypatch
):
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_bytes(b"7 (a) b\n(c) S 5 6 " + b"0 " * 16 + b"99 0\n")
    monkeypatch.setattr(proc, "PROC", str(tmp_path))
    entry = process(7)
    assert (entry.pid, entry.name, entry.state) == (7, "a) b?(c", "S")
    assert (entry.parent, entry.group, entry.start) == (5, 6, 99)


@pytest.fixture
def sleeper():
    child = subprocess.Popen(["sleep", "1000"])
    yield child
    child.kill()
    child.wait()


def test_descendants_are_found_with_and_without_the_children_file(sleeper, monkeypatch):
    own = os.getpid()
    assert sleeper.pid in [p.pid for p in descendants(own)]
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    assert sleeper.pid in [p.pid for p in descendants(own)]


def test_spared_processes_are_not_listed(sleeper):
    assert sleeper.pid not in [p.pid for p in descendants(os.getpid(), frozenset([sleeper.pid]))]


def test_nothing_is_there_without_proc(monkeypatch):
    monkeypatch.setattr(proc, "PROC", "/nonexistent")
    assert proc.table() == {}
    assert process(os.getpid()) is None
    assert descendants(os.getpid()) == []
