"""`sub demo`: every decision is seen in it, and nothing is left of it."""

import os
import subprocess

import pytest
from tests.shim.household import SUB, Household

from subluminal.cli.demo import server
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.loading import parse_bundle


@pytest.fixture
def house(tmp_path, own_home):
    made = Household(tmp_path, own_home)
    yield made
    made.clean()


def test_the_whole_loop(house):
    temporary = house.tmp_path / "temporary"
    temporary.mkdir()
    ran = subprocess.run(
        [*SUB, "demo"],
        env=house.env(TMPDIR=str(temporary)),
        cwd=house.cwd,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    stream = [line for line in ran.stdout.splitlines() if line.startswith(" tail │")]
    for word in ("START", "ALLOW", "THROTTLE", "HINT", "BLOCK", "TERMINATE", "TERMINATED"):
        assert any(f"  {word}  " in line for line in stream), word
    assert "followed" in ran.stdout
    assert "Where to go from here" in ran.stdout
    assert os.listdir(temporary) == []
    assert house.alive() == []
    assert not house.home.exists(), "the user's own home is not touched"


def test_the_servers_tools():
    def call(name, **arguments):
        return server.answer(
            {"method": "tools/call", "params": {"name": name, "arguments": arguments}}
        )

    assert call("list_files")["content"][0]["text"].split() == [
        "README.md",
        "launch.py",
        "notes.txt",
    ]
    assert call("search", query="TODO", limit=1)["content"][0]["text"].startswith("README.md:3")
    assert call("read_file", path="absent")["isError"]


def test_the_policy_is_one_that_people_may_copy():
    from subluminal.cli.demo.stage import POLICY
    from subluminal.policy.lint.linting import lint

    loaded = parse_bundle(POLICY.encode(), "demo.yaml")
    assert compile_bundle(loaded.bundle)
    assert [str(problem) for problem in lint(loaded)] == []
