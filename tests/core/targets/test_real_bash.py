"""The shell reader against a real bash: every program that ran is among the targets, or the call
is opaque (issue 17)."""

import os
from pathlib import Path

import pytest
import yaml
from tests.core.targets.line_maker import LineMaker
from tests.core.targets.real_bash import RealBash

from subluminal.core.targets.reading import targets_of

_LINES = yaml.safe_load((Path(__file__).parent / "bash_lines.yaml").read_text())
_SEEDS = range(6)
_PER_SEED = 120


@pytest.fixture
def bash(tmp_path, monkeypatch):
    made = RealBash(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.delenv("CDPATH", raising=False)
    return made


def assert_seen(bash, line):
    """Runs a line, unless it is opaque. Returns whether it ran."""
    bash.clear()
    found = targets_of("@claude", "Bash", {"command": line}, cwd=str(bash.work))
    if found.opaque:
        return False
    ran = bash.run(line)
    told = [[os.path.basename(words[0]), *words[1:]] for words in found.commands]
    for command in ran.commands:
        assert any(_is_told(command, words) for words in told), (line, command, told)
    written = {each.path for each in found.paths if each.access == "write"}
    for path in ran.new_files:
        assert path in written or os.path.realpath(path) in written, (line, path, written)
    return True


def _is_told(command, words):
    """`{}` of find -exec stands for a name that find puts there; at the end, for several."""
    if words[-1] == "{}" and len(command) > len(words):
        command = command[: len(words)]
    return len(command) == len(words) and all(
        word == given or "{}" in given for word, given in zip(command, words, strict=True)
    )


@pytest.mark.parametrize("line", _LINES, ids=[line[:40] for line in _LINES])
def test_a_line_of_the_corpus_runs_only_what_was_told(bash, line):
    """Lines with which an earlier version of the reader was wrong, and others that are hard."""
    assert_seen(bash, line)


@pytest.mark.parametrize("seed", _SEEDS)
def test_made_lines_run_only_what_was_told(bash, seed):
    """Ordinary, nested and damaged lines, made by chance from a seed."""
    maker = LineMaker(seed)
    ran = sum(assert_seen(bash, maker.line()) for _ in range(_PER_SEED))
    assert ran > _PER_SEED / 5, "nearly all lines were opaque: the test shows nothing"
