"""Runs one conversation twice at once, with and without a shim, and returns what each client got."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

PROGRAMS = Path(__file__).parent / "programs"
WITHIN_S = 110


class Both(NamedTuple):
    """What the client got from the bare server and from the shimmed one."""

    direct: Any
    shimmed: Any
    home: Path


class Place(NamedTuple):
    """A working directory for the bare or the shimmed server, with the files that it works on."""

    path: Path
    shim: list[str]
    env: dict[str, str]


def places(tmp_path: Path) -> tuple[Place, Place, Path]:
    """Makes two directories, with names of the same length so that sizes agree, and the shim's home."""
    home = tmp_path / "sub"
    env = {"HOME": str(tmp_path), "SUB_HOME": str(home), "SUB_RUN_ID": "run-1", "TZ": "UTC"}
    shim = [sys.executable, "-m", "subluminal", "shim", "stdio", "--server", "real", "--"]
    found = []
    for name, words in (("bare", []), ("shim", shim)):
        (tmp_path / name).mkdir()
        found.append(Place(tmp_path / name, words, env))
    return found[0], found[1], home


def both(tmp_path: Path, client: list[str], job_in: Any, prepare: Any = None) -> Both:
    """Lets a client do `job_in(place)` in both places at once. Results have no place's name."""
    bare, shimmed, home = places(tmp_path)
    if prepare is not None:
        prepare(bare.path)
        prepare(shimmed.path)
    jobs = json.dumps([job_in(bare), job_in(shimmed)])
    done = subprocess.run(
        client, input=jobs.encode(), capture_output=True, timeout=WITHIN_S, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    said = json.loads(done.stdout)
    return Both(_unplaced(said[0], bare), _unplaced(said[1], shimmed), home)


def both_programs(tmp_path: Path, command: Any) -> Both:
    """Starts `command(place)` in both places at once. Results have no place's name."""
    bare, shimmed, home = places(tmp_path)
    running = [_start(command(place), place) for place in (bare, shimmed)]
    said = []
    try:
        for place, process in zip((bare, shimmed), running, strict=True):
            out, err = process.communicate(timeout=WITHIN_S)
            assert process.returncode == 0, err.decode()[-3000:]
            said.append(_unplaced(json.loads(out), place))
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.communicate()
    return Both(said[0], said[1], home)


def _start(command: list[str], place: Place) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        cwd=place.path,
        env={**os.environ, **place.env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _unplaced(said: Any, place: Place) -> Any:
    text = json.dumps(said)
    return json.loads(text.replace(str(place.path), "$PLACE").replace(place.path.name, "$NAME"))


def job(place: Place, server: list[str], steps: list[Any], **more: Any) -> dict[str, Any]:
    """Returns a job for the client programs."""
    return {
        "command": [*place.shim, *server],
        "env": place.env,
        "cwd": str(place.path),
        "steps": steps,
        "mode": "auto",
        **more,
    }
