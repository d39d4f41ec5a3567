"""The policy guide is true: its files are written, its commands run, its outputs compared."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

from subluminal.policy.casefile import WANTS

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "writing-a-policy.md"
BLOCK = re.compile(r"^```(\w+)(?: ([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def put(title: str, body: str) -> None:
    """Writes a file that the guide shows, or appends to it."""
    path = Path(title.removesuffix(" +"))
    path.write_text(f"{path.read_text()}\n{body}" if title.endswith(" +") else body)


def test_every_command_of_the_guide_gives_what_it_shows(sub: Any, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = 0
    for language, title, body in BLOCK.findall(GUIDE.read_text("utf-8")):
        if language == "yaml":
            put(title, body)
        elif body.startswith("sed "):
            subprocess.run(body, shell=True, check=True)
        elif language == "console":
            command, _, expected = body.partition("\n")
            ran = sub(*shlex.split(command.removeprefix("$ sub ")))
            assert (ran.out + ran.err).rstrip("\n") == expected.rstrip("\n"), command
            commands += 1
    assert commands == 7


def test_the_guide_names_every_field_of_want() -> None:
    text = GUIDE.read_text("utf-8")
    assert [name for name in WANTS if f"`{name}`" not in text] == []
