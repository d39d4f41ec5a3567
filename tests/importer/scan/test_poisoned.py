"""Definitions as published attacks have them: all are found."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.importer.scan.cases import COMPLETE
from tests.requirements import requirement

FILE = Path(__file__).parents[2] / "cases" / "scan_poisoned.toml"
POISONED = tomllib.loads(FILE.read_text("utf-8"))["poisoned"]


@pytest.mark.parametrize("case", POISONED, ids=lambda case: case["name"])
@requirement("trust:scan-poisoned")
def test_a_published_shape_is_found(sub: Any, tmp_path: Path, case: dict[str, Any]) -> None:
    manifest = tmp_path / "m.json"
    tools = [json.loads(case["tool"])]
    manifest.write_text(json.dumps({"name": "s", **COMPLETE, "tools": tools}))
    ran = sub("scan", "--manifest", str(manifest), "--format", "json", "--fail-on", "high")
    assert ran.code == 1
    (row,) = [json.loads(line) for line in ran.out.splitlines()]
    found = {finding["rule"] for finding in row["findings"]}
    assert set(case["rules"]) <= found
    assert row["risk_score"] > 0
