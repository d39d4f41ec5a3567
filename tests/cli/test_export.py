"""`sub export run`: the events as they were written, and a summary."""

import fcntl
import json
import os
import pathlib

import pytest
from tests.cli import recorded, snapshots
from tests.ledger.home import Home


@pytest.fixture
def full(own_home):
    home = Home(str(own_home))
    recorded.record(home)
    home.store.connection.close()
    yield home
    home.close()


def test_the_events_are_those_of_the_journal(sub, full):
    ran = sub("export", "run", "run-ended")
    journal = pathlib.Path(full.places.journal) / "run-ended" / "shim-a.jsonl"
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == journal.read_text()


def test_a_dash_is_stdout(sub, full, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = sub("export", "run", "run-ended")
    assert sub("export", "run", "run-ended", "-o", "-") == whole
    assert sub("export", "run", "run-ended", "--format", "bundle", "-o", "-").code == 2
    assert not list(tmp_path.iterdir())


def test_into_a_file(sub, full, tmp_path):
    target = tmp_path / "events.jsonl"
    assert sub("export", "run", "12a8877c4af5", "-o", str(target)) == (0, "", "")
    assert json.loads(target.read_text().splitlines()[0])["type"] == "run_start"
    assert target.stat().st_mode & 0o777 == 0o600
    assert sub("ledger", "verify", "--artifact", str(tmp_path)).code == 0
    ran = sub("export", "run", "run-ended", "-o", str(tmp_path / "no" / "where"))
    assert (ran.code, ran.out) == (2, "")


def test_a_pipe_or_a_link_is_written_to_and_stays(sub, full, tmp_path):
    """As root, a device that was replaced is gone for everybody."""
    whole = sub("export", "run", "run-ended").out.encode()
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(target)
    assert sub("export", "run", "run-ended", "-o", str(link)).code == 0
    assert (link.is_symlink(), target.read_bytes()) == (True, whole)
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 1 << 20)
    try:
        assert sub("export", "run", "run-ended", "-o", str(pipe)).code == 0
        assert os.read(end, 1 << 20) == whole
        assert pipe.is_fifo()
    finally:
        os.close(end)


def test_the_summary(sub, full):
    snapshots.check("export-summary", sub("export", "run", "run-ended", "--format", "summary"))
    found = json.loads(sub("export", "run", "run-open", "--json").out)
    assert found["statuses"] == {"OK": 1, "UNKNOWN": 1}
    assert found["status"] is None


def test_what_is_no_run(sub, full):
    assert sub("export", "run", "shim-a-00000001") == (
        2,
        "",
        "error: `shim-a-00000001` is a call, not a run\nhint: list the runs with `sub query runs`\n",
    )


@pytest.fixture
def without_ledger(monkeypatch):
    """As where `subluminal[daemon]` is not installed."""
    monkeypatch.setattr("subluminal.ledger.client.opening.find_spec", lambda _name: None)


def files_in(directory):
    paths = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("run", ["run-ended", "run-open", "12a8877c4af5"])
def test_ledger_and_journals_give_the_same_bundle(sub, full, tmp_path, monkeypatch, run):
    """And `sub run --artifact` makes its own out of the journals."""
    assert sub("export", "run", run, "--format", "bundle", "-o", str(tmp_path / "a")).code == 0
    monkeypatch.setattr("subluminal.ledger.client.opening.find_spec", lambda _name: None)
    assert sub("export", "run", run, "--format", "bundle", "-o", str(tmp_path / "b")).code == 0
    assert files_in(tmp_path / "a") == files_in(tmp_path / "b")
    assert {"events.jsonl", "summary.json", "chain.json"} < set(files_in(tmp_path / "a"))
    assert sub("ledger", "verify", "--artifact", str(tmp_path / "a")).code == 0


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("jsonl", "events.jsonl"),
        ("junit", "junit.xml"),
        ("sarif", "results.sarif"),
        ("summary", "summary.md"),
    ],
)
def test_each_format_is_the_bundles_file(sub, full, tmp_path, form, name):
    sub("export", "run", "run-ended", "--format", "bundle", "-o", str(tmp_path))
    ran = sub("export", "run", "run-ended", "--format", form)
    assert (ran.code, ran.out) == (0, (tmp_path / name).read_text())


def test_a_bundle_needs_a_place(sub, full, tmp_path):
    ran = sub("export", "run", "run-ended", "--format", "bundle")
    assert (ran.code, ran.err) == (
        2,
        "error: a bundle needs a directory\nhint: name it with `-o DIR`\n",
    )
    (tmp_path / "file").write_text("")
    ran = sub("export", "run", "run-ended", "--format", "bundle", "-o", str(tmp_path / "file"))
    assert (ran.code, ran.err) == (2, f"error: cannot write `{tmp_path / 'file'}`: file exists\n")


class TestFromJournals:
    """Without the ledger's libraries the journals are asked."""

    pytestmark = pytest.mark.usefixtures("without_ledger")

    def test_by_the_end_of_the_id(self, sub, full):
        assert sub("export", "run", "n-ended") == sub("export", "run", "run-ended")

    def test_more_than_one(self, sub, full):
        (pathlib.Path(full.places.journal) / "other-open").mkdir()
        ran = sub("export", "run", "open")
        assert (ran.code, ran.err.splitlines()[0]) == (
            2,
            "error: `open` matches more than one id: other-open, run-open",
        )

    def test_none(self, sub, own_home):
        ran = sub("export", "run", "nothing")
        assert (ran.code, ran.err.splitlines()[0]) == (2, "error: there is no run `nothing`")


class TestDiff:
    @pytest.fixture
    def two(self, sub, full, tmp_path):
        for name, run in (("a", "run-ended"), ("b", "run-ended"), ("c", "run-open")):
            sub("export", "run", run, "--format", "bundle", "-o", str(tmp_path / name))
        return [str(tmp_path / name) for name in "abc"]

    def test_the_same(self, sub, two):
        assert sub("export", "diff", two[0], two[1]) == (
            0,
            "no differences, ignoring ids and times\n",
            "",
        )
        ran = sub("export", "diff", two[0], two[1], "--json")
        assert (ran.code, json.loads(ran.out)) == (0, {"same": True, "differences": []})

    def test_not_the_same(self, sub, two):
        ran = sub("export", "diff", two[0], two[2])
        assert ran.code == 1
        assert "only in A" in ran.out
        found = json.loads(sub("export", "diff", two[0], two[2], "--json").out)
        assert found["same"] is False
        assert {"where", "field", "a", "b"} == set(found["differences"][0])

    def test_many_differences_are_cut(self, sub, two, monkeypatch):
        monkeypatch.setattr("subluminal.cli.commands.export_diff._MAX_LINES", 1)
        assert "more; use --json to see all" in sub("export", "diff", two[0], two[2]).out

    def test_no_artifact(self, sub, two, tmp_path):
        assert sub("export", "diff", two[0], str(tmp_path / "no")).code == 2
