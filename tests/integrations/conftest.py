"""The example agents in the real frameworks, each run as a program of its own."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tools.realservers import install_frameworks

ROOT = Path(__file__).parents[2]
AGENTS = ROOT / "examples" / "agents"


@pytest.fixture(scope="session")
def frameworks() -> Path:
    """An interpreter that has the frameworks, installed before a test takes the user's home away."""
    return install_frameworks()


class Ran:
    """What a program left."""

    def __init__(self, done: "subprocess.CompletedProcess[str]") -> None:
        self.said = done.stdout.strip()
        self.code = done.returncode
        self.problem = done.stderr


Run = Callable[..., Ran]


@pytest.fixture
def run(frameworks: Path, own_home: Path, tmp_path: Path) -> Run:
    """Runs Python in the frameworks' interpreter, with the product of this repository."""

    def run(*words: str, env: dict[str, str] | None = None) -> Ran:
        paths = os.pathsep.join([str(ROOT / "src"), str(AGENTS)])
        quiet = {"PYTHONPATH": paths, "PYTHONWARNINGS": "ignore", "HOME": str(tmp_path)}
        done = subprocess.run(
            [str(frameworks), *words],
            capture_output=True,
            text=True,
            timeout=100,
            cwd=tmp_path,
            env={**os.environ, **quiet, **(env or {})},
            check=False,
        )
        return Ran(done)

    return run
