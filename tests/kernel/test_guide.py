"""What the guide for people who come from adjudicate shows is true."""

import re
from pathlib import Path

import pytest

import subluminal.kernel

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "from-adjudicate.md"


def test_the_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    exec(compile(code, str(GUIDE), "exec"), {})
    assert capsys.readouterr().out.strip() == code.rpartition("# ")[2].strip()


def test_names_of_ours_in_the_guide_exist() -> None:
    ours = [
        line.split("|")[2]
        for line in GUIDE.read_text("utf-8").splitlines()
        if line.startswith("| `")
    ]
    named = {name for cell in ours for name in re.findall(r"`([a-z]+_[a-z_]+)\b", cell)}
    assert sorted(name for name in named if not hasattr(subluminal.kernel, name)) == ["created_at"]
