"""What CI systems, Kubernetes and git say about a workload (Pack 1.3.1)."""

from pathlib import Path

import pytest
from msgspec import UNSET, to_builtins

from subluminal.trust.identity.pods import PodFiles
from subluminal.trust.identity.workload import find_workload

NOWHERE = PodFiles("/nonexistent", "/nonexistent")


def found(environ: dict[str, str], cwd: Path, pod_files: PodFiles = NOWHERE) -> dict[str, object]:
    workload: dict[str, object] = to_builtins(find_workload(environ, str(cwd), pod_files))
    return workload


def test_nothing_to_see(tmp_path: Path) -> None:
    assert found({}, tmp_path) == {}


def git(root: Path, head: str = "ref: refs/heads/topic/x", url: str = "git@h:acme/x.git") -> None:
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text(head + "\n")
    (root / ".git" / "config").write_text(
        f'[core]\n\tbare = false\n[remote "fork"]\n\turl = no\n[remote "origin"]\n\turl = {url}\n'
    )


def test_a_git_repository_from_a_directory_below_it(tmp_path: Path) -> None:
    git(tmp_path)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert found({"USER": "ann"}, below) == {
        "user": "ann",
        "repo_path": str(tmp_path),
        "repo": "acme/x",
        "branch": "topic/x",
    }


def test_ci_comes_before_git(tmp_path: Path) -> None:
    git(tmp_path)
    workload = found({"GITHUB_ACTIONS": "1", "GITHUB_REPOSITORY": "acme/ci"}, tmp_path)
    assert (workload["repo"], workload["branch"]) == ("acme/ci", "topic/x")


def test_a_detached_head_has_no_branch(tmp_path: Path) -> None:
    git(tmp_path, head="0123456789abcdef")
    assert "branch" not in found({}, tmp_path)


@pytest.mark.parametrize("absolute", [True, False])
def test_a_worktree(tmp_path: Path, absolute: bool) -> None:
    git(tmp_path / "main")
    inner = tmp_path / "main" / ".git" / "worktrees" / "wt"
    inner.mkdir(parents=True)
    (inner / "HEAD").write_text("ref: refs/heads/other\n")
    (inner / "commondir").write_text("../..\n")
    worktree = tmp_path / "wt"
    worktree.mkdir()
    target = inner if absolute else Path("../main/.git/worktrees/wt")
    (worktree / ".git").write_text(f"gitdir: {target}\n")
    workload = found({}, worktree)
    assert (workload["repo"], workload["branch"]) == ("acme/x", "other")


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / ".git").write_bytes(b"\xff\xfe")
    workload = find_workload({}, str(tmp_path), NOWHERE)
    assert (workload.repo, workload.branch) == (UNSET, UNSET)
