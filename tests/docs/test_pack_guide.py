"""The guide for packs is true: what it shows is the example, and its commands run as written."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.requirements import requirement

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "writing-a-pack.md"
EXAMPLE = ROOT / "examples" / "pack"
BLOCK = re.compile(r"^```(\w*)(?: ([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UV = str(Path(sys.executable).with_name("uv"))


def blocks(language: str) -> list[tuple[str, str]]:
    found = BLOCK.findall(GUIDE.read_text("utf-8"))
    return [(title, body) for name, title, body in found if name == language]


def test_the_guide_shows_the_files_of_the_example() -> None:
    shown = [*blocks("python"), *[each for each in blocks("json") if each[0]]]
    assert [title for title, _ in shown] == ["acme_refunds/__init__.py", "scenarios/negative.json"]
    for title, body in shown:
        assert body == (EXAMPLE / title).read_text("utf-8")
    (entry,) = blocks("toml")
    assert entry[1] in (EXAMPLE / "pyproject.toml").read_text("utf-8")


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """An environment with a Python of its own, that has Subluminal installed, and `pip`."""
    venv = tmp_path / "venv"
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, venv], check=True)
    python = venv / "bin" / "python"
    (site,) = venv.glob("lib/python*/site-packages")
    # What Subluminal and the build need is taken from the Python that runs the tests.
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (site / "tests.pth").write_text("\n".join(ours))
    install = [UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--no-build-isolation"]
    subprocess.run([*install, "--python", python, "-e", ROOT], check=True, capture_output=True)
    pip = venv / "bin" / "pip"
    words = " ".join(install[3:])
    pip.write_text(f'#!/bin/sh\nshift\nexec "{UV}" pip install --python "{python}" {words} "$@"\n')
    pip.chmod(0o755)
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "pack")
    return dict(os.environ) | {"PATH": f"{venv / 'bin'}:{os.environ['PATH']}"}


@requirement("kernel:pack-template")
def test_the_commands_of_the_guide_run(machine: dict[str, str], tmp_path: Path) -> None:
    script = "".join(body for _, body in blocks("sh"))
    ran = subprocess.run(
        ["sh", "-eux", "-c", script], cwd=tmp_path, env=machine, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "6 scenarios, 0 failed" in ran.stdout
    assert "7 passed" in ran.stdout
    listed = re.findall(r"^(\S+) +1\.0\.0 +[0-9a-f]{12}  shop\.refund$", ran.stdout, re.MULTILINE)
    assert listed == ["acme_refunds"]
    assert ran.stdout.count("pass  shape") == 2
