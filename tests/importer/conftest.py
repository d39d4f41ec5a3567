"""A user's home with nothing in it, and the command in it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import sub as sub  # the fixture that runs a command

from subluminal.importer.approving import CERTIFICATE_VARIABLES


@pytest.fixture(autouse=True)
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees whose machine this is."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in CERTIFICATE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "user"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `sub` whose path the tests know."""
    path = tmp_path / "bin" / "sub"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(path)])
    return path


@pytest.fixture
def write(user_home: Path) -> Callable[[str, str | bytes], Path]:
    """`write(".claude.json", text)`: a file in the home, 0600."""

    def make(name: str, content: str | bytes) -> Path:
        path = user_home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        os.chmod(path, 0o600)
        return path

    return make
