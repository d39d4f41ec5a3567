"""The guides for guards are true: their programs run as written and print what they show."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.requirements import requirement

from subluminal import Guard

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guides"
BLOCK = re.compile(r"^```(\w*)(?: ([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(guide: str, language: str) -> list[str]:
    found = BLOCK.findall((GUIDES / guide).read_text("utf-8"))
    return [body for name, _, body in found if name == language]


@requirement("sdk:guide")
def test_the_program_of_the_guide_prints_what_it_shows(own_home: Path, tmp_path: Path) -> None:
    guide = "a-guarded-agent.md"
    (policy,) = blocks(guide, "yaml")
    (tmp_path / "billing.yaml").write_text(policy)
    (tmp_path / "agent.py").write_text("\n".join(blocks(guide, "python")))
    ran = subprocess.run(
        [sys.executable, "agent.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    shown = blocks(guide, "console")[1].splitlines()[1:]
    assert ran.stdout.splitlines() == [
        *shown,
        "REJECT_WITH_HINT small-refunds",
        "small-refunds",
    ]


@requirement("sdk:guide")
def test_the_blocks_about_approvals_run(own_home: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"is_open": lambda: False}
    made: list[Guard] = []
    for body in blocks("approvals-inside-a-program.md", "python"):
        exec(body, names)
        guard = names.get("guard")
        if isinstance(guard, Guard):
            made.append(guard)
    assert made[-1].check("refund", {}).reason_code == "CLOSED"
    for guard in made:
        guard.close()
