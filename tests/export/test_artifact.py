"""An artifact's files, their proof, and what two of them differ in."""

import json
import os
import shutil

import pytest
from tests.export.policies import loaded
from tests.export.shims import Shim, ref

from subluminal.errors import SubluminalError
from subluminal.export.artifact import clear_artifact, make_artifact
from subluminal.export.diffing import diff_artifacts
from subluminal.export.ordering import ordered
from subluminal.export.verifying import verify_artifact

DEEP = b'{"type":"x","source":{"shim_id":"a"},"z":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
PUT = [os.mkfifo, lambda path: path.symlink_to("/dev/zero")]


def write(directory, *shims):
    directory.mkdir()
    make_artifact(str(directory), ordered(shims), str)
    return directory


def shims(suffix="", run_id="run-1", server="files", action="BLOCK"):
    runner, shim = Shim(f"0{suffix}", "", run_id), Shim(f"1{suffix}", server, run_id)
    runner.start_run()
    snapshot = loaded(shim, "no")
    shim.health("spawned")
    shim.call(1, latency_ms=len(suffix))
    policy = ref("p", snapshot.policy_hash)
    shim.begin(2, "write", action=action, rule_id="no", reason_code="NO", policy=policy)
    runner.end_run()
    return runner, shim


@pytest.fixture
def artifact(tmp_path):
    return write(tmp_path / "a", *shims())


class TestProof:
    def findings(self, directory):
        return [(found.table, found.row) for found in verify_artifact(str(directory)).findings]

    def test_it_holds(self, artifact):
        proof = verify_artifact(str(artifact))
        assert (proof.findings, proof.events, proof.shims, proof.files) == ([], 9, 2, 6)

    def test_the_snapshot_is_the_one_that_decided(self, artifact):
        (name,) = os.listdir(artifact / "policies")
        found = json.loads((artifact / "policies" / name).read_text())
        assert name == f"{found['policy_hash']}.json"
        assert found["rules"][0]["rule_id"] == "no"

    @pytest.mark.parametrize(
        "name", ["summary.json", "summary.md", "junit.xml", "results.sarif", "policies"]
    )
    def test_any_file_that_was_changed_or_removed(self, artifact, name):
        path = artifact / name
        path = next(path.iterdir()) if path.is_dir() else path
        path.write_bytes(path.read_bytes() + b" ")
        relative = str(path.relative_to(artifact))
        assert self.findings(artifact) == [("files", relative)]
        path.unlink()
        assert self.findings(artifact) == [("files", relative)]

    def test_an_event_that_was_changed(self, artifact):
        path = artifact / "events.jsonl"
        path.write_text(path.read_text().replace('"BLOCK","rule_id"', '"ALLOW","rule_id"'))
        assert ("events", "shim `1` event 7") in self.findings(artifact)

    @pytest.mark.parametrize("index", [0, 3, -1], ids=["first", "middle", "last"])
    def test_an_event_that_is_gone(self, artifact, index):
        path = artifact / "events.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        del lines[index]
        path.write_text("".join(lines))
        assert {"files", "events"} <= {table for table, _ in self.findings(artifact)}

    def test_a_shim_that_is_gone_or_came_later(self, artifact):
        path = artifact / "events.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if '"shim_id":"1"' not in line))
        assert ("events", "shim `1`") in self.findings(artifact)
        extra = Shim("2")
        extra.health("spawned")
        path.write_bytes("".join(lines).encode() + extra.lines[0] + b"\n")
        assert ("events", "shim `2`") in self.findings(artifact)

    def test_a_line_that_is_torn_or_no_event(self, artifact):
        path = artifact / "events.jsonl"
        path.write_bytes(path.read_bytes() + b"no event\n{")
        tables = [found.message for found in verify_artifact(str(artifact)).findings]
        assert any("not an event" in message for message in tables)
        assert "the file ends in the middle of a line" in tables

    def test_a_path_that_leads_out_is_not_read(self, artifact):
        chain = json.loads((artifact / "chain.json").read_text())
        chain["files"]["../secret"] = "0" * 64
        (artifact / "chain.json").write_text(json.dumps(chain))
        assert self.findings(artifact) == [("files", "../secret")]

    def test_without_a_chain_the_events_prove_themselves(self, artifact):
        (artifact / "chain.json").unlink()
        proof = verify_artifact(str(artifact))
        assert (proof.findings, proof.files) == ([], 0)

    @pytest.mark.parametrize("text", ["{", '{"format": 99}', "[]", '{"z":' + "[" * 100_000])
    def test_a_chain_that_cannot_be_read(self, artifact, text):
        (artifact / "chain.json").write_text(text)
        with pytest.raises(SubluminalError, match=r"chain\.json"):
            verify_artifact(str(artifact))

    @pytest.mark.parametrize(
        "text", [DEEP, b"\xff{}", b'{"type":"x","source":{"shim_id":"a","n":"1"}}']
    )
    def test_lines_that_no_reader_takes(self, artifact, text):
        path = artifact / "events.jsonl"
        path.write_bytes(path.read_bytes() + text + b"\n")
        assert ("events.jsonl", "line after event 9") in self.findings(artifact)

    @pytest.mark.parametrize("put", PUT, ids=["pipe", "device"])
    def test_a_pipe_or_a_device_in_a_files_place_does_not_hold_us_up(self, artifact, put):
        (artifact / "junit.xml").unlink()
        put(artifact / "junit.xml")
        assert self.findings(artifact) == [("files", "junit.xml")]
        (artifact / "chain.json").unlink()
        put(artifact / "chain.json")
        with pytest.raises(SubluminalError, match=r"chain\.json`: it is not a regular file"):
            verify_artifact(str(artifact))

    def test_a_name_that_no_file_can_have(self, artifact):
        chain = json.loads((artifact / "chain.json").read_text())
        chain["files"]["a\0b"] = "0" * 64
        (artifact / "chain.json").write_text(json.dumps(chain))
        assert self.findings(artifact) == [("files", "a\0b")]

    def test_nothing_to_prove(self, tmp_path):
        with pytest.raises(SubluminalError, match="there is no `"):
            verify_artifact(str(tmp_path))
        (tmp_path / "events.jsonl").touch()
        with pytest.raises(SubluminalError, match="there is no event"):
            verify_artifact(str(tmp_path))


class TestDiff:
    def diff(self, a, b):
        return [(each.where, each.field, each.a, each.b) for each in diff_artifacts(str(a), str(b))]

    def test_the_same_calls_are_the_same(self, artifact, tmp_path):
        assert self.diff(artifact, write(tmp_path / "b", *shims("x", "run-2"))) == []

    @pytest.mark.parametrize(
        "text",
        [
            "process {0} died",
            "run 01a1de5f-0a5a-7fb0-b583-{0:012} ended",
            "this is approval {0:012x}",
            "since 2026-11-15T08:42:13.{0}Z",
        ],
    )
    def test_ids_and_times_inside_of_text(self, tmp_path, text):
        sides = []
        for name, number in (("a", 123), ("b", 45678)):
            shim = Shim(name)
            shim.emit("shim_health", health={"state": "killed", "detail": text.format(number)})
            sides.append(write(tmp_path / name, shim))
        assert self.diff(*sides) == []

    def test_another_decision(self, artifact, tmp_path):
        other = write(tmp_path / "b", *shims(action="REJECT_WITH_HINT"))
        assert self.diff(artifact, other) == [
            ("call 2 files/write decision", "decision.action", "BLOCK", "REJECT_WITH_HINT")
        ]

    def test_one_call_more(self, artifact, tmp_path):
        runner, shim = shims()
        shim.call(3)
        found = self.diff(artifact, write(tmp_path / "b", runner, shim))
        assert [where for where, *_ in found] == [
            "call 3 files/read decision",
            "call 3 files/read end",
            "call 3 files/read start",
        ]
        assert all(a is None and b for _, _, a, b in found)

    def test_what_is_no_call_is_counted(self, artifact, tmp_path):
        runner, shim = shims()
        shim.health("spawned")
        ((where, field, a, b),) = self.diff(artifact, write(tmp_path / "b", runner, shim))
        assert (where, field, a) == ("server files shim_health", "", None)
        assert b["health"] == {"state": "spawned", "server_name": "files"}

    def test_a_file_that_is_missing(self, artifact, tmp_path):
        shutil.copytree(artifact, tmp_path / "b")
        (tmp_path / "b" / "junit.xml").unlink()
        assert self.diff(artifact, tmp_path / "b") == [("files", "junit.xml", True, None)]

    def test_what_is_no_artifact(self, artifact, tmp_path):
        with pytest.raises(SubluminalError, match="cannot read"):
            diff_artifacts(str(artifact), str(tmp_path / "no"))
        (artifact / "events.jsonl").write_text("{}\n")
        with pytest.raises(SubluminalError, match="line 1 is not an event"):
            diff_artifacts(str(artifact), str(artifact))

    @pytest.mark.parametrize(
        "text",
        [
            DEEP,
            b'{"type":"x","source":{"shim_id":"a"},"z":' + b"[" * 600 + b"]" * 600 + b"}",
            b"\xff",
            b'{"type":"x","source":3}',
            b'{"type":"tool_call_start","source":{"shim_id":"a"},"call":3}',
            b'{"type":"tool_call_start","source":{"shim_id":"a"},"call":{"call_id":[],"seq":"x"}}',
        ],
    )
    def test_lines_that_only_look_like_events(self, artifact, text):
        (artifact / "events.jsonl").write_bytes(text + b"\n")
        with pytest.raises(SubluminalError, match="line 1 is not an event"):
            diff_artifacts(str(artifact), str(artifact))

    def test_an_event_from_the_future_may_hold_anything(self, artifact):
        with (artifact / "events.jsonl").open("a") as file:
            file.write('{"type":"x","source":{"shim_id":"1"},"call":{"call_id":{}},"health":3}\n')
        assert self.diff(artifact, artifact) == []

    @pytest.mark.parametrize("put", PUT, ids=["pipe", "device"])
    def test_a_pipe_or_a_device_does_not_hold_us_up(self, artifact, put):
        (artifact / "events.jsonl").unlink()
        put(artifact / "events.jsonl")
        with pytest.raises(SubluminalError, match="it is not a regular file"):
            diff_artifacts(str(artifact), str(artifact))

    def test_one_event_of_a_kind_is_compared_by_its_fields(self, artifact, tmp_path):
        _, shim = shims()
        other = Shim("0", "")
        other.start_run()
        other.end_run("FAILED", calls_total=2)
        assert self.diff(artifact, write(tmp_path / "b", other, shim)) == [
            ("run run_end", "run.status", "SUCCEEDED", "FAILED"),
            ("run run_end", "run.summary.calls_total", 0, 2),
        ]


def test_a_directory_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(SubluminalError, match="cannot write the artifact"):
        make_artifact(str(tmp_path / "no"), iter([]), str)


class TestFilesInTheWay:
    """A directory may come with a checkout, or with what an earlier run had no time to finish."""

    def again(self, directory):
        clear_artifact(str(directory))
        make_artifact(str(directory), ordered(shims()), str)
        assert verify_artifact(str(directory)).findings == []

    def test_what_was_not_finished_is_cleared_away(self, artifact):
        names = ["summary.json.17.part", "events.jsonl.9.part", f"policies/{'ab' * 32}.json.9.part"]
        for name in names:
            (artifact / name).touch()
        (artifact / "my.part").touch()
        self.again(artifact)
        assert not [name for name in names if (artifact / name).exists()]
        assert (artifact / "my.part").exists()

    def test_a_link_is_not_followed_nor_a_pipe_waited_for(self, artifact, tmp_path):
        precious = tmp_path / "precious"
        precious.write_text("mine")
        ours = f".{os.getpid()}.part"
        (artifact / f"summary.json{ours}").symlink_to(precious)
        os.mkfifo(artifact / f"junit.xml{ours}")
        make_artifact(str(artifact), ordered(shims()), str)
        assert precious.read_text() == "mine"
        assert verify_artifact(str(artifact)).findings == []

    def test_policies_that_lead_elsewhere(self, artifact, tmp_path):
        elsewhere = tmp_path / "elsewhere"
        (artifact / "policies").rename(elsewhere)
        (artifact / "policies").symlink_to(elsewhere)
        before = {path.name: path.stat().st_mtime_ns for path in elsewhere.iterdir()}
        self.again(artifact)
        assert {path.name: path.stat().st_mtime_ns for path in elsewhere.iterdir()} == before

    def test_what_cannot_be_written_leaves_no_part(self, artifact):
        def lines():
            yield from ordered(shims())
            raise OSError(28, "No space left on device")

        clear_artifact(str(artifact))
        with pytest.raises(SubluminalError, match="no space left"):
            make_artifact(str(artifact), lines(), str)
        assert sorted(os.listdir(artifact)) == ["policies"]
