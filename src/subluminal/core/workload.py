"""Where a run lives, as far as the machine shows it: CI systems, Kubernetes, git (Pack 1.3.1).

CI systems are data: one row each. Nothing here fails; what cannot be read is left out.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from subluminal.contracts.identity import Workload

_MAX_FILE_BYTES = 65_536


class PodFiles(NamedTuple):
    """Where Kubernetes puts what a pod may know of itself."""

    service_account: str = "/var/run/secrets/kubernetes.io/serviceaccount"
    pod_info: str = "/etc/podinfo"
    """a volume of the downward API, under the name that its documentation uses"""


POD_FILES = PodFiles()


class CiSystem(NamedTuple):
    """How one CI system names things: variables, the first one that is set counts."""

    provider: str
    mark: str
    job_id: tuple[str, ...]
    repo: tuple[str, ...]
    branch: tuple[str, ...]


CI_SYSTEMS = (
    CiSystem(
        "github",
        "GITHUB_ACTIONS",
        ("GITHUB_RUN_ID",),
        ("GITHUB_REPOSITORY",),
        ("GITHUB_HEAD_REF", "GITHUB_REF_NAME"),
    ),
    CiSystem(
        "gitlab",
        "GITLAB_CI",
        ("CI_JOB_ID",),
        ("CI_PROJECT_PATH",),
        ("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_BRANCH", "CI_COMMIT_REF_NAME"),
    ),
    CiSystem(
        "jenkins",
        "JENKINS_URL",
        ("BUILD_TAG", "BUILD_ID"),
        ("GIT_URL",),
        ("CHANGE_BRANCH", "BRANCH_NAME", "GIT_BRANCH"),
    ),
    CiSystem(
        "circleci",
        "CIRCLECI",
        ("CIRCLE_WORKFLOW_JOB_ID", "CIRCLE_BUILD_NUM"),
        ("CIRCLE_REPOSITORY_URL",),
        ("CIRCLE_BRANCH",),
    ),
    CiSystem(
        "buildkite", "BUILDKITE", ("BUILDKITE_JOB_ID",), ("BUILDKITE_REPO",), ("BUILDKITE_BRANCH",)
    ),
    CiSystem(
        "azure",
        "TF_BUILD",
        ("BUILD_BUILDID",),
        ("BUILD_REPOSITORY_NAME",),
        ("SYSTEM_PULLREQUEST_SOURCEBRANCH", "BUILD_SOURCEBRANCHNAME"),
    ),
    CiSystem(
        "bitbucket",
        "BITBUCKET_BUILD_NUMBER",
        ("BITBUCKET_BUILD_NUMBER",),
        ("BITBUCKET_REPO_FULL_NAME",),
        ("BITBUCKET_BRANCH",),
    ),
)


def find_workload(
    environ: Mapping[str, str], cwd: str, pod_files: PodFiles = POD_FILES
) -> Workload:
    """Gathers what CI, Kubernetes and git say; CI's word on repo and branch goes before git's."""
    ci = next((system for system in CI_SYSTEMS if environ.get(system.mark)), None)
    root = _git_root(cwd)
    git_repo, git_branch = _git(root) if root else (UNSET, UNSET)
    repo: str | UnsetType = UNSET
    branch: str | UnsetType = UNSET
    job_id: str | UnsetType = UNSET
    if ci is not None:
        named = _first(environ, ci.repo)
        repo = repo_name(named) if isinstance(named, str) else UNSET
        branch = _branch(_first(environ, ci.branch))
        job_id = _first(environ, ci.job_id)
    return Workload(
        user=environ.get("USER") or environ.get("LOGNAME") or UNSET,
        repo_path=root or UNSET,
        ci_provider=ci.provider if ci else UNSET,
        job_id=job_id,
        repo=git_repo if repo is UNSET else repo,
        branch=git_branch if branch is UNSET else branch,
        namespace=environ.get("POD_NAMESPACE") or _text(f"{pod_files.service_account}/namespace"),
        service_account=environ.get("POD_SERVICE_ACCOUNT")
        or _text(f"{pod_files.pod_info}/serviceaccount"),
        pod=environ.get("POD_NAME") or _text(f"{pod_files.pod_info}/name"),
        labels=_labels(pod_files),
    )


def repo_name(address: str) -> str:
    """`owner/name` of a repository's address; the address itself if it has no such part."""
    path = address.removesuffix("/").removesuffix(".git")
    if "://" in path:
        path = path.split("://", 1)[1].partition("/")[2]
    elif ":" in path:
        path = path.partition(":")[2]
    return path.strip("/") or address


def _branch(name: str | UnsetType) -> str | UnsetType:
    """Some systems give a branch as git's reference, or as that of the remote."""
    if isinstance(name, str):
        return name.removeprefix("refs/heads/").removeprefix("origin/")
    return name


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str | UnsetType:
    return next((environ[name] for name in names if environ.get(name)), UNSET)


def _text(path: str) -> str | UnsetType:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_FILE_BYTES).strip() or UNSET
    except OSError:
        return UNSET


def _labels(pod_files: PodFiles) -> dict[str, str] | UnsetType:
    """The downward API writes one `key="value"` a line."""
    text = _text(f"{pod_files.pod_info}/labels")
    if not isinstance(text, str):
        return UNSET
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key: value.strip('"') for key, _, value in pairs}


def _git_root(cwd: str) -> str | None:
    path = cwd
    while True:
        if os.path.exists(os.path.join(path, ".git")):
            return path
        parent = os.path.dirname(path)
        if parent == path:
            return None
        path = parent


def _git(root: str) -> tuple[str | UnsetType, str | UnsetType]:
    """Reads repository and branch from git's own files: starting git would cost 5 ms."""
    directory = os.path.join(root, ".git")
    pointer = _text(directory) if os.path.isfile(directory) else UNSET
    if isinstance(pointer, str) and pointer.startswith("gitdir:"):  # a worktree or submodule
        directory = os.path.join(root, pointer.removeprefix("gitdir:").strip())
    head = _text(os.path.join(directory, "HEAD"))
    branch: str | UnsetType = UNSET
    if isinstance(head, str) and head.startswith("ref: refs/heads/"):
        branch = head.removeprefix("ref: refs/heads/")
    common = _text(os.path.join(directory, "commondir"))
    if isinstance(common, str):
        directory = os.path.join(directory, common)
    return _origin(os.path.join(directory, "config")), branch


def _origin(path: str) -> str | UnsetType:
    text = _text(path)
    section = ""
    for line in text.splitlines() if isinstance(text, str) else ():
        words = line.strip()
        if words.startswith("["):
            section = words
        elif section == '[remote "origin"]' and words.replace(" ", "").startswith("url="):
            return repo_name(words.partition("=")[2].strip())
    return UNSET
