"""What the package promises to programs: names, signatures, types, and a light start."""

import inspect
import subprocess
import sys
from pathlib import Path

from tests.requirements import requirement
from tests.test_imports import loaded_by

import subluminal
from subluminal import Guard

HEAVY = {"asyncio", "http", "logging", "socket", "sqlite3", "ssl", "subprocess", "yaml"}
CRYPTO = {"cryptography", "joserfc", "secrets"}


@requirement("sdk:fast-start")
def test_a_guard_and_its_calls_load_nothing_heavy(own_home: Path) -> None:
    code = """
from subluminal import Guard, Refused
guard = Guard(run_id="r")
@guard.tool
def add(a: int, b: int = 2) -> int:
    return a + b
add(1)
guard.check("t", {"deep": [1]})
guard.close()
"""
    loaded = loaded_by(code)
    assert "subluminal.sdk.guard" in loaded
    assert not loaded & (HEAVY | CRYPTO)
    assert not [name for name in loaded if name.startswith(("http.", "subluminal.cli"))]


def test_every_name_of_the_package_is_there() -> None:
    for name in subluminal.__all__:
        assert getattr(subluminal, name) is not None
    assert not hasattr(subluminal, "guard")


def test_the_parameters_are_those_of_the_page() -> None:
    made = inspect.signature(Guard).parameters
    expected = ["agent_id", "server", "policy", "run_id", "env", "principal", "attestation", "home"]
    assert list(made)[:8] == expected
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in made.values())
    assert (made["server"].default, made["refusals"].default) == ("python", "raise")
    tool = inspect.signature(Guard.tool).parameters
    assert list(tool)[2:] == ["name", "server", "labels", "provider", "targets", "args"]
    assert list(inspect.signature(Guard.delegate).parameters)[1:] == ["agent_id", "attestation"]
    assert list(inspect.signature(Guard.run).parameters)[1:] == ["run_id", "meta"]


@requirement("sdk:typed")
@requirement("sdk:spm-typed")
def test_the_decorator_keeps_types(tmp_path: Path) -> None:
    programs = ["tests/sdk/typed_program.py", "tests/spm/typed_checks.py"]
    words = ["-m", "mypy", "--strict", "--warn-unused-ignores", "--cache-dir", str(tmp_path)]
    ran = subprocess.run(
        [sys.executable, *words, *programs],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
