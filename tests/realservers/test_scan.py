"""The definitions of the official servers, listed by `sub scan --start`: no text finding."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.realservers.test_real_servers import node

from subluminal.importer.scan.rules import About, Rule, about

SUB = Path(sys.executable).with_name("sub")
TEXT_RULES = {rule.value for rule in Rule if about(rule) is About.DEFINITION}


def test_no_text_finding_in_official_servers(installed: Path, tmp_path: Path) -> None:
    """All of them are servers of one client, so their names are compared too."""
    bin_ = installed / "mcp1" / "bin"
    commands: dict[str, list[object]] = {
        "filesystem": node(installed, "filesystem", tmp_path),
        "memory": node(installed, "memory"),
        "everything": node(installed, "everything", "stdio"),
        "sequential-thinking": node(installed, "sequential-thinking"),
        "git": [bin_ / "mcp-server-git"],
        "fetch": [bin_ / "mcp-server-fetch"],
        "time": [bin_ / "mcp-server-time", "--local-timezone", "UTC"],
        "sqlite": [bin_ / "mcp-server-sqlite", "--db-path", tmp_path / "x.db"],
        "email": [bin_ / "mcp-email-server", "stdio"],
    }
    words = {name: [str(word) for word in command] for name, command in commands.items()}
    servers = {name: {"command": each[0], "args": each[1:]} for name, each in words.items()}
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": servers}))
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "SUB_HOME": str(tmp_path / "sub")}
    ran = subprocess.run(
        [SUB, "scan", "claude", "--start", "--yes", "--format", "json"],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {row["server_name"] for row in rows} == set(servers)
    found = [(row["server_name"], each) for row in rows for each in row["findings"]]
    assert [each for each in found if each[1]["rule"] in TEXT_RULES] == []
    assert "warning" not in ran.stderr, "every server listed its tools"
