"""The guide from Agent-SPM is true: its bundle lints clean, and its commands do what it says."""

import re
import shlex
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "from-agent-spm.md"
BLOCK = re.compile(r"^```(\w+)(?: ([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_commands_of_the_guide_run(sub: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(GUIDE.read_text("utf-8"))
    ((name, bundle),) = [(title, body) for language, title, body in blocks if language == "json"]
    (tmp_path / name).write_text(bundle)
    ((command, _, expected),) = [
        body.partition("\n") for language, _, body in blocks if language == "console"
    ]
    ran = sub(*shlex.split(command.removeprefix("$ sub ")))
    assert ran.out + ran.err == expected
    key = tmp_path / "policy.key"
    key.write_text("0" * 64 + "\n")
    key.chmod(0o600)
    (signing,) = [body for language, _, body in blocks if language == "sh"]
    commands = [line for line in signing.splitlines() if line.startswith("sub ")]
    assert len(commands) == 2
    for line in commands:
        assert sub(*shlex.split(line)[1:]).code == 0, line
