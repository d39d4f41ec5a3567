"""Starts all jobs at once, measures them at two barriers, and waits for their ends."""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.load import jobs
from tests.processes import process, read
from tests.shim.household import SUB, Household, wait_until

AGENT = str(Path(__file__).parent / "agent.py")
POLICY = str(Path(__file__).parent / "policy.yaml")
PATIENCE_S = 400


class Measure(NamedTuple):
    """The resources of one process; sizes in bytes."""

    role: str
    pss: int
    descriptors: int
    maps: int
    """number of mapped files, shared memory included"""


class Running(NamedTuple):
    """A running job."""

    job: jobs.Job
    place: Path
    process: subprocess.Popen

    def run_id(self):
        return (self.place / "out").read_text().split("\n")[0]

    def err(self):
        return (self.place / "err").read_text()

    def is_over(self):
        return self.process.poll() is not None

    def answers(self):
        """Returns (shim's number, tool, outcome) of each answer, in order."""
        path = self.place / "answers"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line.split() for line in lines]


class Crowd(Household):
    """All jobs, in one home."""

    def begin(self, planned, installed):
        self.signs = self.tmp_path / "signs"
        self.signs.mkdir()
        self.running = [self._start(each, installed) for each in planned]

    def _start(self, job, installed):
        place = self.tmp_path / f"job-{job.number}"
        place.mkdir()
        task = {
            "place": str(place),
            "signs": str(self.signs),
            "patience_s": PATIENCE_S,
            "servers": jobs.commands(job, place, installed),
            "calls": job.calls,
            "blow": job.blow,
            "blow_at": job.blow_at,
            "victim": job.victim,
        }
        (place / "job.json").write_text(json.dumps(task))
        with open(place / "out", "wb") as out, open(place / "err", "wb") as err:
            process = subprocess.Popen(
                [
                    *self.sub_run(place),
                    "--",
                    sys.executable,
                    "-I",
                    "-S",
                    AGENT,
                    f"{place}/job.json",
                ],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=self.env(MEMORY_FILE_PATH=str(place / "memory.jsonl")),
                cwd=place,
            )
        return Running(job, place, process)

    def sub_run(self, place):
        options = [
            "--strict",
            "--artifact",
            str(place / "artifact"),
            "--events",
            str(place / "events"),
        ]
        return [*SUB, "run", "--print-run-id", "--env", "ci", "--policy", POLICY, *options]

    def say(self, sign):
        (self.signs / sign).touch()

    def wait_ready(self):
        """Waits until every agent has started its servers."""
        self._wait_all("ready")
        over = [each.err() for each in self.running if each.is_over()]
        assert not over, over[:3]

    def wait_done(self):
        """Waits until every agent has made its calls or was killed."""
        self._wait_all("done")

    def _wait_all(self, sign):
        def look():
            return all(each.is_over() or (each.place / sign).exists() for each in self.running)

        wait_until(look, f"every agent to be {sign}: {self.missing(sign)}", PATIENCE_S)

    def missing(self, sign):
        return [each.job.number for each in self.running if not (each.place / sign).exists()]

    def wait_over(self):
        deadline = time.monotonic() + PATIENCE_S
        for each in self.running:
            each.process.wait(max(1.0, deadline - time.monotonic()))

    def measure(self):
        """Measures every process of the crowd. Returns the measures by pid."""
        found = {}
        for pid in self.alive():
            if measure := measured(pid):
                found[pid] = measure
        return found

    def clean(self):
        super().clean()
        for each in self.running:
            each.process.kill()
            each.process.wait(20)


def measured(pid):
    """Measures one process. Returns None if it is gone."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        pss = next(line for line in rollup.splitlines() if line.startswith("Pss:"))
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
        maps = sum("/" in line for line in Path(f"/proc/{pid}/maps").read_text().splitlines())
    except (OSError, StopIteration):
        return None
    return Measure(role_of(pid), int(pss.split()[1]) * 1024, descriptors, maps)


def role_of(pid):
    entry = process(pid)
    words = read(pid, "cmdline").split(b"\0")
    if entry is not None and entry.name in ("sub-warden", "sub-deputy"):
        return entry.name.removeprefix("sub-")
    if b"subluminal" in words or any(word.endswith(b"/sub") for word in words[:2]):
        return "shim" if b"shim" in words else "sub run"
    return "agent" if AGENT.encode() in words else "server"


def table(measures):
    """Returns a readable table of memory by role."""
    lines = []
    for role in sorted({each.role for each in measures.values()}):
        sizes = [each.pss for each in measures.values() if each.role == role]
        lines.append(
            f"{role:8} {len(sizes):5} processes  PSS {sum(sizes) / 2**20:8.0f} MiB"
            f"  median {statistics.median(sizes) / 2**20:5.1f}"
        )
    total = sum(each.pss for each in measures.values())
    lines.append(f"{'sum':8} {len(measures):5} processes  PSS {total / 2**20:8.0f} MiB")
    return "\n".join(lines)
