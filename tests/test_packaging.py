"""`pip install .` gives a working `sub` with the core's dependencies only; the locks are whole."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from subluminal import __version__
from subluminal.cli.table import COMMANDS, Group

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
UV = str(Path(sys.executable).with_name("uv"))

HELP_OF_ALL = """
import json, sys
from subluminal.cli.main import main
for words in json.load(sys.stdin):
    try:
        code = main([*words, "--help"])
    except SystemExit as end:
        code = end.code
    assert not code, words
print("all of them")
"""
"""Prints the help of every command that stdin names. One process: starting each takes a minute."""


def run(*words: str, stdin: str = "") -> str:
    ran = subprocess.run(words, input=stdin, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that has our wheel, and what the wheel asks for."""
    folder = tmp_path_factory.mktemp("clean")
    run(UV, "build", "--quiet", "--wheel", "--no-build-isolation", "--out-dir", str(folder), ".")
    (wheel,) = folder.glob("*.whl")
    run(UV, "venv", "--quiet", "--python", sys.executable, str(folder / "venv"))
    python = str(folder / "venv" / "bin" / "python")
    # The locked versions, so that a new release elsewhere cannot break this test.
    locks = ["--constraint", "requirements/dev.txt"]
    run(UV, "pip", "install", "--quiet", "--python", python, *locks, str(wheel))
    return folder / "venv"


def test_the_wheel_gives_a_working_command(clean: Path) -> None:
    sub = str(clean / "bin" / "sub")
    assert run(sub, "version").startswith(f"sub {__version__} ")
    assert run(sub, "canonical", stdin='{"b":1,"a":1.0}') == '{"a":1,"b":1}'
    assert run(str(clean / "bin" / "python"), "-m", "subluminal", "version").startswith("sub ")


def test_the_core_installs_its_five_dependencies_only(clean: Path) -> None:
    listed = run(UV, "pip", "freeze", "--python", str(clean / "bin" / "python"))
    names = {re.split(r"[ =@]", line)[0].lower() for line in listed.splitlines()}
    parser = {"tree-sitter", "tree-sitter-bash"}
    assert names == {"subluminal", "msgspec", "pyyaml", "google-re2"} | parser


def test_every_command_explains_itself_without_the_extras(clean: Path) -> None:
    """A command loads what an extra brings when it runs, never to print its help."""
    commands = [
        [name, *verb]
        for name, entry in COMMANDS.items()
        for verb in ([[verb] for verb in entry.commands] if isinstance(entry, Group) else [[]])
    ]
    said = run(str(clean / "bin" / "python"), "-c", HELP_OF_ALL, stdin=json.dumps(commands))
    assert said.count("usage: sub ") >= len(commands)
    assert said.endswith("all of them\n")


def requirements(name: str) -> set[str]:
    lines = (ROOT / "requirements" / f"{name}.in").read_text("utf-8").splitlines()
    return {line for line in lines if line and not line.startswith(("#", "-r "))}


def test_what_is_declared_is_what_is_locked() -> None:
    assert requirements("core") == set(PROJECT["dependencies"])
    for extra, declared in PROJECT["optional-dependencies"].items():
        if (ROOT / "requirements" / f"{extra}.in").exists():
            assert requirements(extra) == set(declared), extra


@pytest.mark.parametrize(
    "lock", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda p: p.stem
)
def test_locks_have_hashes_and_no_addresses(lock: Path) -> None:
    text = lock.read_text("utf-8")
    assert "://" not in text
    for entry in re.split(r"\n(?=\S)", text.strip()):
        assert re.match(r"#|[A-Za-z0-9_.-]+==\S+.*--hash=sha256:", entry, re.DOTALL), entry


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    return [ROOT / os.fsdecode(name) for name in listed.split(b"\0") if name]


def test_no_file_names_a_registry_or_a_folder_of_the_machine_it_was_written_on() -> None:
    # In two pieces, so that this file passes its own test.
    forbidden = re.compile(rb"/wor" + rb"k/|/roo" + rb"t/|pypi\." + rb"org|registry\.npm" + rb"js")
    named = [
        str(path.relative_to(ROOT))
        for path in tracked_files()
        if path.is_file() and forbidden.search(path.read_bytes())
    ]
    assert named == []
