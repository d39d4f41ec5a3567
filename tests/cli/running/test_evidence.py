"""`--events` and `--artifact`: what a run leaves, whatever happens to agent, reader or us."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys

import pytest
from tests.journal.lines import verify_lines
from tests.requirements import requirement
from tests.shim.household import SUB, WITHIN_S, budget, deny, policy, wait_until

from subluminal.ledger.client.journals import lines_by_shim
from subluminal.operator.running.stream import Outlet, Stream

PYTHON = [sys.executable, "-I", "-S", "-c"]
FILES = ["chain.json", "events.jsonl", "junit.xml", "results.sarif", "summary.json", "summary.md"]


def by_shim(lines):
    """The chains in a stream: each must hold by itself."""
    found = {}
    for line in lines:
        found.setdefault(json.loads(line)["source"]["shim_id"], []).append(line)
    return found


def journal_lines(runner):
    paths = (runner.home / "journal").glob("*/*.jsonl")
    return sorted(line for path in paths for line in path.read_bytes().splitlines())


def proves(directory):
    return subprocess.run(
        [*SUB, "ledger", "verify", "--artifact", str(directory)], capture_output=True, check=False
    )


def scrubbed(text):
    """Without ids, moments and durations."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z?", "<time>", text)
    text = re.sub(r'("(?:p50|p95|p99|max|duration_ms)": )\d+', r"\1<ms>", text)
    text = re.sub(r' time="[\d.]+"', "", text)
    return re.sub(r"(\| \d+)(( \| \d+)+ \|$)", r"\1", text, flags=re.MULTILINE)


def streamed(directory):
    """What the stream makes of the journals in a directory."""
    outlet = Outlet(os.open(directory / "out", os.O_WRONLY | os.O_CREAT), "out")
    stream = Stream(str(directory), [outlet])
    stream.start()
    stream.finish()
    assert stream.wait(WITHIN_S)
    outlet.close()
    return (directory / "out").read_bytes().splitlines()


class TestEvents:
    """`--events`."""

    def test_a_file_gets_all_events_in_order_per_shim(self, runner):
        runner.write_policy(policy(deny("fail")))
        agent = runner.agent("exit=0", "echo", "fail", "echo")
        code, out, _ = runner.run("--events", "events.jsonl", command=agent)
        assert (code, out.splitlines()[0]) == (0, "echo 0")
        lines = (runner.cwd / "events.jsonl").read_bytes().splitlines()
        assert sorted(lines) == journal_lines(runner)
        for shim_id, chain in by_shim(lines).items():
            assert verify_lines(chain, shim_id) is None

    def test_stdout_is_theirs_alone(self, runner):
        agent = runner.agent("exit=0", "echo")
        code, out, err = runner.run("--events", "-", "--print-run-id", command=agent)
        assert code == 0
        assert sorted(out.encode().splitlines()) == journal_lines(runner)
        run_id, said, _ = err.splitlines()
        assert said == "echo 0"
        assert run_id == json.loads(out.splitlines()[0])["run_id"]

    def test_arguments_that_look_like_events_do_not_tear_lines(self, tmp_path):
        """What an agent sends may stand in an event as it is."""
        nested = b'{"type":"tool_call_decision","x":{"type":"run_end"},"n":%d}'
        end = b'{"type":"run_end","n":%d}'
        (tmp_path / "a.jsonl").write_bytes(b"%b\n%b\n" % (nested % 1, end % 2))
        (tmp_path / "b.jsonl").write_bytes(b"%b\n%b\n" % (end % 3, nested % 4))
        (tmp_path / "c.jsonl").write_bytes(b"%b\n" % (nested % 5))
        assert [json.loads(line)["n"] for line in streamed(tmp_path)] == [1, 5, 2, 3, 4]

    def test_a_journal_in_many_parts_is_one_chain(self, tmp_path):
        """The tenth part comes after the second, for the stream and for the artifact."""
        for part in range(12):
            name = f"a.{part}.jsonl" if part else "a.jsonl"
            (tmp_path / name).write_bytes(b'{"type":"x","n":%d}\n' % part)
        lines = streamed(tmp_path)
        (road,) = lines_by_shim(str(tmp_path))
        assert list(road()) == lines
        assert [json.loads(line)["n"] for line in lines] == list(range(12))

    def test_while_it_runs(self, runner):
        """The call's events come before the agent ends."""
        process = runner.start_run("--events", "-", command=runner.agent("hang", "echo"))
        seen = []
        while "tool_call_end" not in seen:
            seen.append(json.loads(process.stdout.readline())["type"])
        assert process.poll() is None
        process.terminate()
        rest = [
            json.loads(line)["type"]
            for line in process.communicate(timeout=WITHIN_S)[0].splitlines()
        ]
        assert rest[-1] == "run_end"

    def test_a_reader_that_goes_away_does_not_end_the_agent(self, runner):
        agent = runner.agent("exit=5", *["echo"] * 50)
        reader, writer = os.pipe()
        process = runner.start_run("--events", "-", command=agent, stdout=writer)
        os.close(writer)
        os.read(reader, 1)
        os.close(reader)
        _, err = process.communicate(timeout=WITHIN_S)
        assert process.returncode == 5
        assert err.count("echo 0\n") == 50
        assert err.endswith("sub: the reader of the events in `-` went away\n")

    def test_a_reader_that_stops_holds_nobody_up(self, runner):
        """Agent, signals and the run's end go on; a signal ends the wait for the reader."""
        marker = runner.cwd / "done"
        calls = "; ".join(f"open({str(marker)!r}, 'w')" for _ in range(1))
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        while True:
            try:
                os.write(writer, b"x" * 4096)
            except BlockingIOError:
                break
        os.set_blocking(writer, True)
        process = runner.start_run("--events", "-", command=[*PYTHON, calls], stdout=writer)
        os.close(writer)
        wait_until(marker.exists, "the agent")
        wait_until(lambda: runner.events("run_end"), "the run's end")
        process.terminate()
        assert process.wait(WITHIN_S) == 0
        os.close(reader)

    def test_a_place_that_cannot_be_written_starts_nothing(self, runner):
        code, out, err = runner.run("--events", "no/where", command=[*PYTHON, "print(1)"])
        assert (code, out) == (2, "")
        assert err == (
            "error: cannot write the events to `no/where`: no such file or directory\n"
            "hint: the file's directory must exist and be writable\n"
        )

    def test_a_full_disk_is_told_and_fails(self, runner):
        code, _, err = runner.run("--events", "/dev/full", command=["true"])
        assert code == 1
        assert err == "error: cannot write all events to `/dev/full`: no space left on device\n"


class TestArtifact:
    """`--artifact`."""

    @requirement("001-16H:artifacts")
    def test_it_is_whole_and_proves_itself(self, runner):
        runner.write_policy(policy(deny("fail")))
        agent = runner.agent("exit=0", "echo", "fail")
        code, _, _ = runner.run("--artifact", "out", command=agent)
        out = runner.cwd / "out"
        assert code == 0
        assert [name for name in sorted(os.listdir(out)) if name != "policies"] == FILES
        assert sorted((out / "events.jsonl").read_bytes().splitlines()) == journal_lines(runner)
        found = json.loads((out / "summary.json").read_text())
        assert found["decisions"] == {"ALLOW": 1, "BLOCK": 1}
        assert found["totals"]["calls_total"] == 2
        assert [row["rule_id"] for row in found["violations"]] == ["no-fail"]
        proof = proves(out)
        assert (proof.returncode, proof.stderr) == (0, b"")

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_it_is_left_when_we_are_told_to_stop(self, runner, number):
        process = runner.start_run("--artifact", "out", command=runner.agent("hang", "echo"))
        assert process.stdout.readline() == "echo 0\n"
        process.stdout.readline()
        process.send_signal(number)
        process.wait(WITHIN_S)
        found = json.loads((runner.cwd / "out" / "summary.json").read_text())
        assert found["status"] in ("CANCELLED", "FAILED")
        assert proves(runner.cwd / "out").returncode == 0

    @pytest.mark.parametrize(
        ("command", "code"),
        [
            ([*PYTHON, "import os; os.kill(os.getpid(), 9)"], 137),
            ([*PYTHON, "raise SystemExit(4)"], 4),
            (["no-such-agent"], 127),
        ],
        ids=["killed", "failed", "missing"],
    )
    def test_it_is_left_when_the_agent_fails(self, runner, command, code):
        assert runner.run("--artifact", "out", command=command)[0] == code
        found = json.loads((runner.cwd / "out" / "summary.json").read_text())
        assert found["status"] == "FAILED"
        assert proves(runner.cwd / "out").returncode == 0

    def test_what_we_know_is_there_when_we_are_killed(self, runner):
        process = runner.start_run("--artifact", "out", command=runner.agent("hang", "echo"))
        assert process.stdout.readline() == "echo 0\n"
        events = runner.cwd / "out" / "events.jsonl"
        wait_until(lambda: b'"tool_call_end"' in events.read_bytes(), "the call on record")
        process.kill()
        process.wait(WITHIN_S)
        runner.wait_empty()
        assert not (runner.cwd / "out" / "chain.json").exists()
        assert proves(runner.cwd / "out").returncode == 0

    def test_an_earlier_runs_files_are_not_taken_for_this_ones(self, runner):
        out = runner.cwd / "out"
        (out / "policies").mkdir(parents=True)
        for name in [*FILES, f"policies/{'0' * 64}.json"]:
            (out / name).write_text("old")
        (out / "mine.txt").write_text("kept")
        runner.run("--artifact", "out", command=["true"])
        assert not (out / "policies" / f"{'0' * 64}.json").exists()
        assert all((out / name).read_text() != "old" for name in FILES)
        assert (out / "mine.txt").read_text() == "kept"

    def test_two_runs_at_once_do_not_share_a_directory(self, runner):
        process = runner.start_run(
            "--artifact",
            "out",
            command=[*PYTHON, "print(1, flush=True); input()"],
            stdin=subprocess.PIPE,
        )
        assert process.stdout.readline() == "1\n"
        code, _, err = runner.run("--artifact", "out", command=["true"])
        assert code == 2
        assert "another run is writing its artifact" in err
        process.communicate("\n", timeout=WITHIN_S)
        assert runner.run("--artifact", "out", command=["true"])[0] == 0

    def test_a_directory_that_cannot_be_made_starts_nothing(self, runner):
        (runner.cwd / "file").write_text("")
        code, out, err = runner.run("--artifact", "file", command=[*PYTHON, "print(1)"])
        assert (code, out) == (2, "")
        assert err.startswith("error: cannot use the artifact `")

    def test_what_is_in_the_way_is_named(self, runner):
        (runner.cwd / "out" / "junit.xml").mkdir(parents=True)
        code, _, err = runner.run("--artifact", "out", command=["true"])
        assert code == 2
        assert "out/junit.xml`: is a directory" in err

    def test_a_run_that_is_not_started_leaves_nothing(self, runner):
        words = ("--artifact", "out", "--events", "no/such/file")
        code, out, err = runner.run(*words, command=[*PYTHON, "print(1)"])
        assert (code, out) == (2, "")
        assert "hint: the file's directory must exist" in err
        assert os.listdir(runner.cwd / "out") == []

    @pytest.mark.parametrize("rubbish", ['"n":"1"', f'"z":{"[" * 9000}{"]" * 9000}'])
    def test_rubbish_in_the_record_does_not_cost_the_artifact(self, runner, rubbish):
        line = f'{{"type":"x","source":{{"shim_id":"a",{rubbish}}}}}'
        deed = f"echo {shlex.quote(line)} >> $SUB_HOME/journal/$SUB_RUN_ID/a.jsonl"
        code, _, err = runner.run("--artifact", "out", command=["sh", "-c", deed])
        assert (code, err) == (0, "")
        assert proves(runner.cwd / "out").returncode == 0

    def test_one_that_vanishes_meanwhile_is_told(self, runner):
        agent = [*PYTHON, "import shutil; shutil.rmtree('out')"]
        code, _, err = runner.run("--artifact", "out", command=agent)
        assert code == 1
        assert "cannot write the artifact" in err

    def test_the_same_calls_leave_the_same_but_for_ids_and_times(self, runner):
        """Two servers, refusals and all; every file, every list in the same order."""
        runner.write_policy(policy(deny("fail"), budget(5)))
        first = runner.agent("exit=0", "echo", "fail", "echo")
        second = runner.agent("exit=0", "echo", "echo", "echo", server=["quiet"])
        both = ["sh", "-c", f"{shlex.join(first)}; {shlex.join(second)}"]
        for name in ("a", "b"):
            code, _, err = runner.run("--strict", "--artifact", name, command=both)
            assert code == 3, err
        diff = [*SUB, "export", "diff", "a", "b"]
        ran = subprocess.run(diff, cwd=runner.cwd, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout) == (0, "no differences, ignoring ids and times\n")
        for name in ("summary.json", "summary.md", "junit.xml", "results.sarif"):
            a, b = (scrubbed((runner.cwd / each / name).read_text()) for each in "ab")
            assert a == b
