"""The example agents and further scenarios in the real frameworks, one process for each framework."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.records import calls_of, lines_of
from tools.realservers import install_venv

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
AGENTS = ROOT / "examples" / "agents"
_WITHIN_S = 100


class Program:
    """A process that runs scenarios, one after the other."""

    def __init__(self, python: Path, errors: Path) -> None:
        paths = os.pathsep.join([str(ROOT / "src"), str(AGENTS), str(HERE)])
        own = {"PYTHONPATH": paths, "PYTHONWARNINGS": "ignore", "HOME": str(errors.parent)}
        self._errors = errors
        with errors.open("wb") as stderr:
            self._process = subprocess.Popen(
                [str(python), str(HERE / "serving.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                cwd=errors.parent,
                env={**os.environ, **own},
            )

    def ask(self, **asked: Any) -> str:
        """Runs a scenario; returns what it printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        environ = {"SUB_HOME": os.environ["SUB_HOME"]}
        self._process.stdin.write(json.dumps({**asked, "environ": environ}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, self._errors.read_text()
        answer = json.loads(line)
        assert not answer["problem"], answer["problem"]
        return str(answer["said"])

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._process.communicate(timeout=_WITHIN_S)
        finally:
            self._process.kill()


@pytest.fixture(scope="session")
def frameworks() -> Path:
    """An interpreter that has the frameworks, installed before a test takes the user's home away."""
    return install_venv("frameworks")


@pytest.fixture(scope="session")
def mcp1() -> Path:
    """An interpreter that has the MCP SDK's first line."""
    return install_venv("mcp1")


@pytest.fixture(scope="session")
def program(
    frameworks: Path, mcp1: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Program]]:
    """Returns the process of a framework, started when it is first asked for."""
    started: dict[str, Program] = {}
    with ExitStack() as stack:

        def program(framework: str) -> Program:
            if framework not in started:
                errors = tmp_path_factory.mktemp(framework) / "errors"
                started[framework] = stack.enter_context(
                    Program(mcp1 if framework == "mcp1" else frameworks, errors)
                )
            return started[framework]

        yield program


Agent = Callable[..., str]


@pytest.fixture
def agent(program: Callable[[str], Program]) -> Agent:
    """Lets the example agent of a framework do a task, as a user would: `with_….py TASK HOW`."""

    def agent(framework: str, *words: str) -> str:
        file = str(AGENTS / f"with_{framework}.py")
        return program(framework).ask(scenario="example", file=file, words=words)

    return agent


@pytest.fixture
def scenario(program: Callable[[str], Program]) -> Agent:
    """Runs a function of `scenarios_….py` in a framework's process."""

    def scenario(framework: str, name: str, *words: object, module: str | None = None) -> str:
        module = module or f"scenarios_{framework}"
        return program(framework).ask(scenario=name, module=module, words=words)

    return scenario


@pytest.fixture
def python(frameworks: Path, tmp_path: Path) -> Callable[..., str]:
    """Runs Python code in a process of its own, with the frameworks at hand."""

    def python(*words: str) -> str:
        done = subprocess.run(
            [str(frameworks), "-c", *words],
            capture_output=True,
            text=True,
            timeout=_WITHIN_S,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "HOME": str(tmp_path)},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return python


def record_of(home: Path) -> list[list[dict[str, Any]]]:
    """Returns the events of each call, in the order of the run; several processes wrote them."""
    order = ["tool_call_start", "tool_call_decision", "tool_call_end"]
    calls = calls_of([json.loads(line) for _, line in lines_of(home)])
    for call in calls:
        call.sort(key=lambda event: order.index(event["type"]))
        assert [event["type"] for event in call] == order
    return sorted(calls, key=lambda call: int(call[0]["call"]["seq"]))


def actions(calls: list[list[dict[str, Any]]]) -> list[str]:
    """Returns what was decided about each call."""
    return [call[1]["decision"]["action"] for call in calls]


def statuses(calls: list[list[dict[str, Any]]]) -> list[str]:
    """Returns how each call ended."""
    return [call[2]["status"] for call in calls]


def of_framework(name: str, *more: object) -> Any:
    """Returns a parameter of a test; tests of one framework share a worker, and so its process."""
    return pytest.param(name, *more, marks=pytest.mark.xdist_group(f"framework-{name}"))
