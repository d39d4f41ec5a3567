"""Reads the variables in which CI systems describe a job: one row of a table for each system.

A selector such as `branch: [main]` may allow a lot, so only a branch of the repository itself may
be called `main` here. A tag has no branch. The branch of a pull request from another repository is
`owner/name:branch`, which git does not allow as a branch name; it is `?:branch` if that repository
is unknown. Nothing here fails: what cannot be read is left out.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from subluminal.config.plain_files import plain_file

UNKNOWN_REPO = "?"
_HEADS = "refs/heads/"
_REMOTE_BRANCH = "GIT_BRANCH"
"""Jenkins' git plugin gives the branch with its remote: `origin/main`."""
_NO_BRANCHES = ("detached", "HEAD")
_MAX_EVENT_BYTES = 32 * 1024 * 1024
"""Most bytes that are read of GitHub's event file, which GitHub limits to 25 MB."""

Environ = Mapping[str, str]
Fork = Callable[[Environ], str | None]
"""Returns the name of the other repository that the job's commit comes from, or None."""


class CiJob(NamedTuple):
    """A job as its CI system describes it; None for what the system does not say."""

    provider: str
    job_id: str | None
    repo: str | None
    branch: str | None
    has_ref: bool
    """whether the system says what is built, so that git need not be asked"""


def ci_job(environ: Environ) -> CiJob | None:
    """Returns the current job, or None outside CI."""
    system = _system(environ)
    return None if system is None else _job(system, environ)


def ci_actor(environ: Environ) -> str | None:
    """Returns the CI system's name for the person who started the job, or None."""
    system = _system(environ)
    return None if system is None else _first(environ, system.actor)


def repo_name(address: str) -> str:
    """Returns `owner/name` of a repository's address; the address itself if it has no such part."""
    path = address.removesuffix("/").removesuffix(".git")
    if "://" in path:
        path = path.split("://", 1)[1].partition("/")[2]
    elif ":" in path:
        path = path.partition(":")[2]
    return path.strip("/") or address


def _system(environ: Environ) -> "CiSystem | None":
    for system in CI_SYSTEMS:
        if any(environ.get(mark) for mark in system.marks):
            return system
    return None


def _job(system: "CiSystem", environ: Environ) -> CiJob:
    repo = _first(environ, system.repo)
    tag = _first(environ, system.tag)
    ref = next((name for name in system.branch if environ.get(name)), None)
    branch = None if tag or ref is None else _branch(ref, environ[ref])
    fork = system.fork(environ) if branch else None
    return CiJob(
        provider=system.provider,
        job_id=_first(environ, system.job_id),
        repo=repo_name(repo) if repo else None,
        branch=f"{fork}:{branch}" if fork else branch,
        has_ref=bool(tag or ref),
    )


def _first(environ: Environ, names: tuple[str, ...]) -> str | None:
    return next((environ[name] for name in names if environ.get(name)), None)


def _branch(variable: str, name: str) -> str | None:
    """Returns the branch in a variable's value; None if that is a reference to something else."""
    if name.startswith("refs/") and not name.startswith(_HEADS):
        return None
    if variable == _REMOTE_BRANCH:
        name = name.removeprefix("origin/")
    return None if name in _NO_BRANCHES else name.removeprefix(_HEADS) or None


def _no_fork(_environ: Environ) -> str | None:
    return None


def _differs(*pairs: tuple[str, str]) -> Fork:
    """Returns a `Fork` for a system that names both repositories, as pairs of source and target."""

    def fork(environ: Environ) -> str | None:
        for source, target in pairs:
            if named := environ.get(source):
                name = repo_name(named)
                own = repo_name(environ.get(target, ""))
                return None if name.lower() == own.lower() else name
        return None

    return fork


def _github_fork(environ: Environ) -> str | None:
    """Returns where a pull request comes from; only the file of the event says that."""
    if not environ.get("GITHUB_HEAD_REF"):
        return None
    try:
        path = environ.get("GITHUB_EVENT_PATH", "")
        with open(path, "rb", opener=plain_file) as file:
            event = msgspec.json.decode(file.read(_MAX_EVENT_BYTES), type=_Event)
    except (OSError, ValueError, RecursionError):
        return UNKNOWN_REPO
    repo = event.pull_request.head.repo
    if repo is None:  # the fork was deleted meanwhile
        return UNKNOWN_REPO
    own = environ.get("GITHUB_REPOSITORY", "")
    return None if repo.full_name.lower() == own.lower() else repo.full_name


def _azure_fork(environ: Environ) -> str | None:
    """Uses Azure's own flag: a repository has several addresses there, which do not compare."""
    if environ.get("SYSTEM_PULLREQUEST_ISFORK", "").lower() != "true":
        return None
    return repo_name(environ.get("SYSTEM_PULLREQUEST_SOURCEREPOSITORYURI") or UNKNOWN_REPO)


def _circleci_fork(environ: Environ) -> str | None:
    """Uses two variables that are set for forks only."""
    owner, name = environ.get("CIRCLE_PR_USERNAME"), environ.get("CIRCLE_PR_REPONAME")
    return f"{owner or UNKNOWN_REPO}/{name or UNKNOWN_REPO}" if owner or name else None


def _jenkins_fork(environ: Environ) -> str | None:
    """Uses a variable that is set for forks only: the fork's owner, or owner and name."""
    return environ.get("CHANGE_FORK") or None


class _Repo(msgspec.Struct, frozen=True):
    full_name: str


class _Head(msgspec.Struct, frozen=True):
    repo: _Repo | None = None


class _PullRequest(msgspec.Struct, frozen=True):
    head: _Head


class _Event(msgspec.Struct, frozen=True):
    """The part of GitHub's event that names a pull request's repository."""

    pull_request: _PullRequest


class CiSystem(NamedTuple):
    """The variables of one CI system. The first one of each list that is set counts."""

    provider: str
    marks: tuple[str, ...]
    job_id: tuple[str, ...]
    actor: tuple[str, ...]
    repo: tuple[str, ...]
    branch: tuple[str, ...]
    """the branch, or git's reference; the source branch of a pull request first"""
    tag: tuple[str, ...] = ()
    """variables that are set if a tag is built"""
    fork: Fork = _no_fork


CI_SYSTEMS = (
    CiSystem(
        "github",
        marks=("GITHUB_ACTIONS",),
        job_id=("GITHUB_RUN_ID",),
        actor=("GITHUB_TRIGGERING_ACTOR", "GITHUB_ACTOR"),
        repo=("GITHUB_REPOSITORY",),
        # Not GITHUB_REF_NAME, which may be a tag or a branch.
        branch=("GITHUB_HEAD_REF", "GITHUB_REF"),
        fork=_github_fork,
    ),
    CiSystem(
        "gitlab",
        marks=("GITLAB_CI",),
        job_id=("CI_JOB_ID",),
        actor=("GITLAB_USER_LOGIN",),
        repo=("CI_PROJECT_PATH",),
        branch=(
            "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME",
            "CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_NAME",
            "CI_COMMIT_BRANCH",
            "CI_COMMIT_REF_NAME",
        ),
        tag=("CI_COMMIT_TAG",),
        fork=_differs(
            ("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH", "CI_PROJECT_PATH"),
            (
                "CI_EXTERNAL_PULL_REQUEST_SOURCE_REPOSITORY",
                "CI_EXTERNAL_PULL_REQUEST_TARGET_REPOSITORY",
            ),
        ),
    ),
    CiSystem(
        "jenkins",
        # The first is set only if Jenkins is configured with its own address.
        marks=("JENKINS_URL", "JENKINS_HOME"),
        job_id=("BUILD_TAG", "BUILD_ID"),
        # A common plugin sets the first one.
        actor=("BUILD_USER_ID", "CHANGE_AUTHOR"),
        repo=("GIT_URL", "GIT_URL_1"),
        branch=("CHANGE_BRANCH", "BRANCH_NAME", _REMOTE_BRANCH),
        tag=("TAG_NAME",),
        fork=_jenkins_fork,
    ),
    CiSystem(
        "circleci",
        marks=("CIRCLECI",),
        job_id=("CIRCLE_WORKFLOW_JOB_ID", "CIRCLE_BUILD_NUM"),
        actor=("CIRCLE_USERNAME",),
        repo=("CIRCLE_REPOSITORY_URL",),
        branch=("CIRCLE_BRANCH",),
        tag=("CIRCLE_TAG",),
        fork=_circleci_fork,
    ),
    CiSystem(
        "buildkite",
        marks=("BUILDKITE",),
        job_id=("BUILDKITE_JOB_ID",),
        actor=("BUILDKITE_BUILD_CREATOR",),
        repo=("BUILDKITE_REPO",),
        branch=("BUILDKITE_BRANCH",),
        tag=("BUILDKITE_TAG",),
        fork=_differs(("BUILDKITE_PULL_REQUEST_REPO", "BUILDKITE_REPO")),
    ),
    CiSystem(
        "azure",
        marks=("TF_BUILD",),
        job_id=("BUILD_BUILDID",),
        actor=("BUILD_REQUESTEDFOR",),
        repo=("BUILD_REPOSITORY_NAME",),
        # Not BUILD_SOURCEBRANCHNAME, which is the last part only: `main` for `evil/main`.
        branch=("SYSTEM_PULLREQUEST_SOURCEBRANCH", "BUILD_SOURCEBRANCH"),
        fork=_azure_fork,
    ),
    CiSystem(
        "bitbucket",
        marks=("BITBUCKET_BUILD_NUMBER",),
        job_id=("BITBUCKET_BUILD_NUMBER",),
        actor=("BITBUCKET_STEP_TRIGGERER_UUID",),
        repo=("BITBUCKET_REPO_FULL_NAME",),
        # Pull requests from forks do not start a pipeline there.
        branch=("BITBUCKET_BRANCH",),
        tag=("BITBUCKET_TAG",),
    ),
)
