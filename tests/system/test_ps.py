"""Processes as ps(1) shows them agree with /proc."""

import calendar
import os
import subprocess
import sys

import pytest

from subluminal.system import proc, ps
from subluminal.system.process import below, exists


@pytest.fixture
def family(tmp_path):
    """A child with a child of its own, in a program whose name has spaces."""
    odd = tmp_path / "odd name"
    odd.symlink_to("/bin/sh")
    script = "sleep 1000 & echo $!; wait"
    child = subprocess.Popen(
        [str(odd), "-c", script, "--flag"],
        stdout=subprocess.PIPE,
        env={**os.environ, "A_MARK": "a.1.b", "TEXT": "two words\nand a line"},
        start_new_session=True,
    )
    grandchild = int(child.stdout.readline())
    yield child.pid, grandchild
    os.killpg(child.pid, 9)
    child.wait()
    child.stdout.close()


def test_both_describe_a_process_alike(family):
    for pid in family:
        one, other = proc.process(pid), ps.process(pid)
        assert (one.pid, one.parent, one.group) == (other.pid, other.parent, other.group)
        assert one.name == other.name
        assert abs(proc.born_at(one) - ps.born_at(other)) < 2
        assert not other.is_dead


def test_both_find_the_same_descendants(family):
    child, grandchild = family
    assert [p.pid for p in ps.descendants(child)] == [grandchild]
    assert {p.pid for p in ps.descendants(os.getpid())} >= {child, grandchild}
    assert grandchild not in [p.pid for p in ps.descendants(os.getpid(), frozenset([child]))]
    assert below({child}, proc.table(), frozenset([grandchild])) == []


def test_both_find_a_variable_and_a_command(family):
    for source in (proc, ps):
        marks = source.variables(b"A_MARK")
        assert {pid: marks.get(pid) for pid in family} == dict.fromkeys(family, b"a.1.b")
        assert b"--flag" in source.commands()[family[0]]


def test_a_dead_process_is_not_found_and_a_zombie_is_dead():
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert ps.process(child.pid).is_dead
    assert exists(child.pid)
    child.wait()
    assert not exists(child.pid)
    assert ps.process(child.pid) is None


def test_ps_itself_is_not_listed():
    assert [entry.name for entry in ps.descendants(os.getpid())].count("ps") == 0


def test_this_process_is_asked_for_once(monkeypatch):
    ps._known.clear()
    first = ps.process(os.getpid())
    assert first.start > 0
    monkeypatch.setattr(ps, "_PROGRAMS", ())
    assert ps.process(os.getpid()).start == first.start


def test_without_ps_no_process_is_found(monkeypatch):
    monkeypatch.setattr(ps, "_PROGRAMS", ())
    assert ps.table() == {}
    assert ps.process(os.getppid()) is None


@pytest.mark.parametrize(
    "text", [b"Thu Jan  1 00:00:00 1970", b"Thu Feb 29 23:59:59 2024", b"Sun Mar  1 09:30:00 2026"]
)
def test_the_start_is_read_in_utc(text):
    _, month, day, clock, year = text.decode().split()
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    hour, minute, second = (int(part) for part in clock.split(":"))
    date = (int(year), months.index(month) + 1, int(day), hour, minute, second)
    assert ps._seconds(text.split()) == calendar.timegm(date)


def test_apple_s_flag_for_environments():
    """By construction: this letter prints environments there, and is refused by other systems."""
    assert ("-axEww" if sys.platform == "darwin" else "axeww") == ps._WITH_ENVIRONMENT
