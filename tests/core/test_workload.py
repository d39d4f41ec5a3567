"""What CI systems, Kubernetes and git show of a workload (Pack 1.3.1)."""

from pathlib import Path

import pytest
from msgspec import UNSET, to_builtins

from subluminal.core.workload import CI_SYSTEMS, PodFiles, find_workload, repo_name

NOWHERE = PodFiles("/nonexistent", "/nonexistent")


def found(environ: dict[str, str], cwd: Path, pod_files: PodFiles = NOWHERE) -> dict[str, object]:
    workload: dict[str, object] = to_builtins(find_workload(environ, str(cwd), pod_files))
    return workload


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (
            {
                "GITHUB_ACTIONS": "true",
                "GITHUB_RUN_ID": "7",
                "GITHUB_REPOSITORY": "acme/x",
                "GITHUB_REF_NAME": "main",
            },
            ("github", "7", "acme/x", "main"),
        ),
        (
            {
                "GITHUB_ACTIONS": "true",
                "GITHUB_RUN_ID": "7",
                "GITHUB_REPOSITORY": "acme/x",
                "GITHUB_HEAD_REF": "topic",
                "GITHUB_REF_NAME": "12/merge",
            },
            ("github", "7", "acme/x", "topic"),
        ),
        (
            {
                "GITLAB_CI": "true",
                "CI_JOB_ID": "8",
                "CI_PROJECT_PATH": "acme/y",
                "CI_COMMIT_REF_NAME": "v1",
            },
            ("gitlab", "8", "acme/y", "v1"),
        ),
        (
            {
                "JENKINS_URL": "https://ci",
                "BUILD_TAG": "jenkins-1",
                "GIT_URL": "git@github.com:acme/z.git",
                "GIT_BRANCH": "origin/main",
            },
            ("jenkins", "jenkins-1", "acme/z", "main"),
        ),
        (
            {
                "CIRCLECI": "true",
                "CIRCLE_BUILD_NUM": "9",
                "CIRCLE_REPOSITORY_URL": "https://github.com/acme/w",
                "CIRCLE_BRANCH": "b",
            },
            ("circleci", "9", "acme/w", "b"),
        ),
        (
            {
                "BUILDKITE": "true",
                "BUILDKITE_JOB_ID": "j",
                "BUILDKITE_REPO": "https://t:secret@github.com/acme/v.git",
                "BUILDKITE_BRANCH": "b",
            },
            ("buildkite", "j", "acme/v", "b"),
        ),
        (
            {
                "TF_BUILD": "True",
                "BUILD_BUILDID": "1",
                "BUILD_REPOSITORY_NAME": "acme/u",
                "SYSTEM_PULLREQUEST_SOURCEBRANCH": "refs/heads/fix",
            },
            ("azure", "1", "acme/u", "fix"),
        ),
        (
            {
                "BITBUCKET_BUILD_NUMBER": "3",
                "BITBUCKET_REPO_FULL_NAME": "acme/t",
                "BITBUCKET_BRANCH": "b",
            },
            ("bitbucket", "3", "acme/t", "b"),
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_ci_systems(
    environ: dict[str, str], expected: tuple[str, str, str, str], tmp_path: Path
) -> None:
    workload = found(environ, tmp_path)
    assert tuple(workload[k] for k in ("ci_provider", "job_id", "repo", "branch")) == expected


def test_every_ci_system_of_the_table_is_tried_above() -> None:
    assert [system.provider for system in CI_SYSTEMS] == [
        "github",
        "gitlab",
        "jenkins",
        "circleci",
        "buildkite",
        "azure",
        "bitbucket",
    ]


def test_nothing_to_see(tmp_path: Path) -> None:
    assert found({}, tmp_path) == {}


def test_a_pod_s_files_and_variables(tmp_path: Path) -> None:
    account, info = tmp_path / "account", tmp_path / "info"
    account.mkdir()
    info.mkdir()
    (account / "namespace").write_text("prod")
    (info / "name").write_text("agent-1\n")
    (info / "serviceaccount").write_text("runner")
    (info / "labels").write_text('app="agent"\ntier="x=y"\n\n')
    files = PodFiles(str(account), str(info))
    assert found({}, tmp_path, files) == {
        "namespace": "prod",
        "service_account": "runner",
        "pod": "agent-1",
        "labels": {"app": "agent", "tier": "x=y"},
    }
    given = found({"POD_NAMESPACE": "n", "POD_NAME": "p"}, tmp_path, files)
    assert (given["namespace"], given["pod"]) == ("n", "p")


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


def test_ci_s_word_goes_before_git_s(tmp_path: Path) -> None:
    git(tmp_path)
    workload = found({"GITHUB_ACTIONS": "1", "GITHUB_REPOSITORY": "acme/ci"}, tmp_path)
    assert (workload["repo"], workload["branch"]) == ("acme/ci", "topic/x")


def test_a_detached_head_is_no_branch(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://github.com/acme/x.git", "acme/x"),
        ("https://user:token@github.com/acme/x", "acme/x"),
        ("ssh://git@host:2222/acme/x.git/", "acme/x"),
        ("git@host:acme/x.git", "acme/x"),
        ("acme/x", "acme/x"),
        ("https://host", "https://host"),
    ],
)
def test_repo_name(address: str, name: str) -> None:
    assert repo_name(address) == name


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / ".git").write_bytes(b"\xff\xfe")
    workload = find_workload({}, str(tmp_path), NOWHERE)
    assert (workload.repo, workload.branch) == (UNSET, UNSET)
