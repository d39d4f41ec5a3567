"""What the package promises to programs: names, signatures, types, and a light start."""

import inspect
import operator
import subprocess
import sys
from pathlib import Path

import pytest
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


SURFACE = {
    "Guard": "(*, agent_id=None, server='python', policy=None, run_id=None, env=None, "
    "principal=None, attestation=None, home=None, plugins=(), approvals=None, "
    "approval_timeout_ms=300000, on_throttle='raise', refusals='raise', on_error=None)",
    "Guard.tool": "(fn=None, *, name=None, server=None, labels=(), provider='built-in', "
    "targets=None, args=None)",
    "Guard.call": "(tool, args, *, server=None, labels=(), context=None, provider='built-in', "
    "client_call_id=None)",
    "Guard.check": "(tool, args, *, server=None, labels=(), context=None, provider='built-in', "
    "client_call_id=None)",
    "Guard.run": "(run_id=None, meta=None)",
    "Guard.delegate": "(agent_id, attestation=None)",
    "Guard.environ": "()",
    "Guard.close": "()",
}
"""The page's names, parameters and defaults, and `client_call_id`."""


@pytest.mark.parametrize("name", SURFACE)
def test_names_parameters_and_defaults_are_those_of_the_page(name: str) -> None:
    signature = inspect.signature(operator.attrgetter(name)(subluminal))
    parameters = [
        each.replace(annotation=each.empty)
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    assert str(inspect.Signature(parameters)) == SURFACE[name]


def test_refusals_are_one_family() -> None:
    kinds = ("Blocked", "Throttled", "Rejected", "RunTerminated")
    assert all(issubclass(getattr(subluminal, name), subluminal.Refused) for name in kinds)
    told = ("rule_id", "reason_code", "hint", "suggested_args", "backoff_ms", "outcome")
    assert all(isinstance(getattr(subluminal.Refused, name), property) for name in told)
    assert isinstance(Guard.run_id, property)


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


def test_a_traceback_names_what_programs_import() -> None:
    names = ("Refused", "Blocked", "Throttled", "Rejected", "RunTerminated")
    for name in names:
        found = getattr(subluminal, name)
        assert (found.__module__, found.__qualname__) == ("subluminal", name)
