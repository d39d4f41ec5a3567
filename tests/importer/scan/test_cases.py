"""Each rule finds its hits and leaves its near misses alone, in the output of `sub scan`."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.importer.scan.cases import Case, read_cases
from tests.requirements import requirement

from subluminal.importer.scan.rules import About, Rule, about

CASES = [case for rule in Rule for case in read_cases(rule.value)]


def of(kind: About) -> list[Any]:
    return [pytest.param(case, id=str(case)) for case in CASES if about(Rule(case.rule)) is kind]


@pytest.fixture
def home(user_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home in /tmp itself: modes of the directories above count, and pytest closes its own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv("HOME", folder)
        monkeypatch.chdir(folder)
        yield Path(folder)


def check(sub: Any, home: Path, case: Case) -> None:
    ran = sub(*case.words(home))
    assert ran.code == 0, ran.err
    rows = [json.loads(line) for line in ran.out.splitlines()]
    found = [
        finding["level"]
        for row in rows
        for finding in row["findings"]
        if finding["rule"] == case.rule and case.data.get("server") in (None, row["server_name"])
    ]
    if case.is_hit:
        assert found, ran.out
        assert case.data.get("level", found[0]) in found
    else:
        assert found == [], ran.out
        assert case.data["why"]


@pytest.mark.parametrize("case", of(About.ENTRY))
@requirement("trust:scan-entries")
def test_entries(sub: Any, home: Path, case: Case) -> None:
    check(sub, home, case)


@pytest.mark.parametrize("case", of(About.DEFINITION))
@requirement("trust:scan-definitions")
def test_definitions(sub: Any, home: Path, case: Case) -> None:
    check(sub, home, case)


@pytest.mark.parametrize("case", of(About.MANIFEST))
@requirement("trust:scan-manifests")
def test_manifests(sub: Any, home: Path, case: Case) -> None:
    check(sub, home, case)


def test_every_rule_has_hits_and_near_misses() -> None:
    for rule in Rule:
        kinds = {case.is_hit for case in CASES if case.rule == rule}
        assert kinds == {True, False}, rule
