"""The definitions of the official servers, as they listed them in November 2026: no text finding.

tests/realservers/test_scan.py asks the real servers.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.importer.scan.cases import COMPLETE
from tests.requirements import requirement

from subluminal.importer.scan.rules import About, Rule, about

FILE = Path(__file__).parents[2] / "data" / "scan" / "official.json"
SERVERS = json.loads(FILE.read_text("utf-8"))
TEXT_RULES = {rule.value for rule in Rule if about(rule) is About.DEFINITION}


def test_seven_servers_are_there() -> None:
    assert sorted(SERVERS) == [
        *("everything", "fetch", "filesystem", "git", "memory", "sequential-thinking", "time")
    ]
    assert sum(len(tools) for tools in SERVERS.values()) > 40


@requirement("trust:scan-official")
@pytest.mark.parametrize("names", [[name] for name in SERVERS] + [list(SERVERS)], ids="+".join)
def test_no_text_finding(sub: Any, tmp_path: Path, names: list[str]) -> None:
    """One by one, and all together, as servers of one client."""
    paths = []
    for name in names:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"name": name, **COMPLETE, "tools": SERVERS[name]}))
        paths.append(str(path))
    ran = sub("scan", "--manifest", *paths, "--format", "json")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert len(rows) == len(names)
    found = [each for row in rows for each in row["findings"] if each["rule"] in TEXT_RULES]
    assert found == []
