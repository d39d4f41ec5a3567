"""The pack `shell` against a real bash: what it lets pass runs listed programs and nothing else."""

from pathlib import Path

import pytest
from tests.core.targets.line_maker import LineMaker
from tests.core.targets.real_bash import RealBash
from tests.packs.test_shell import CWD, LINES, decided
from tests.requirements import requirement

from subluminal.core.targets.literal import literal_commands
from subluminal.kernel import DecisionKind

LISTED = ["git", "npm", "ls", "grep", "p0", "p1", "cat", "echo", "true", "cd"]
_LINES = 1_500


@requirement("kernel:shell-hostile")
@pytest.mark.parametrize("seed", range(4))
def test_made_lines_run_listed_programs_only(seed: int, tmp_path: Path) -> None:
    """Ordinary, nested and damaged lines, made by chance; those that pass are run."""
    bash, maker, ran = RealBash(tmp_path), LineMaker(seed), 0
    for _ in range(_LINES):
        line = maker.line()
        decision = decided({"command": line, "cwd": CWD}, {"allowlist": LISTED})
        if decision.kind is DecisionKind.EXECUTE:
            assert_runs_as_told(bash, line)
            ran += 1
    assert ran >= 10, "nearly no line passed: the test shows nothing"


@pytest.mark.parametrize("line", LINES["hostile"])
def test_hostile_lines_that_are_literal_run_as_told(line: str, tmp_path: Path) -> None:
    """The reader is right about these lines, too: it is the pack that does not let them pass."""
    programs = {argv[0] for argv in literal_commands(line) or ()}
    if programs and programs <= {"git", "npm", "ls", "grep", "cat", "make", "rm", "touch", "echo"}:
        assert_runs_as_told(RealBash(tmp_path), line)


def assert_runs_as_told(bash: RealBash, line: str) -> None:
    commands = literal_commands(line)
    assert commands is not None
    done = bash.run(line)
    assert [command for command in done.commands if command not in commands] == [], line
    assert done.new_files == set(), line
