"""Finds out where a run takes place: CI job, Kubernetes pod, git repository (Pack 1.3.1).

Nothing here fails: what cannot be read is left out.
"""

import os
from collections.abc import Mapping

from msgspec import UNSET

from subluminal.contracts.identity import Workload
from subluminal.trust.identity.ci_systems import ci_actor, ci_job, repo_name
from subluminal.trust.identity.machine import local_user, read_text
from subluminal.trust.identity.pods import POD_FILES, SERVICE_ACCOUNT, PodFiles, find_pod


def find_workload(
    environ: Mapping[str, str], cwd: str, pod_files: PodFiles = POD_FILES
) -> Workload:
    """Collects what CI, Kubernetes and git say. For repository and branch, CI comes before git."""
    job = ci_job(environ)
    root = _git_root(cwd)
    repo, branch = _git(root) if root else (None, None)
    if job is not None:
        repo = job.repo or repo
        # A job may check out any branch; that does not change the branch it was started for.
        branch = job.branch if job.has_ref else branch
    pod = find_pod(environ, pod_files)
    return Workload(
        user=environ.get("USER") or environ.get("LOGNAME") or UNSET,
        repo_path=root or UNSET,
        ci_provider=job.provider if job else UNSET,
        job_id=(job and job.job_id) or UNSET,
        repo=repo or UNSET,
        branch=branch or UNSET,
        namespace=pod.namespace or UNSET,
        service_account=pod.service_account or UNSET,
        pod=pod.name or UNSET,
        labels=UNSET if pod.labels is None else pod.labels,
    )


def find_principal(environ: Mapping[str, str], workload: Workload) -> str:
    """Returns who started the run.

    It is the person whom CI names, else USER or LOGNAME, else the service account of the pod, else
    the user of the process as the password database names it.
    """
    named = ci_actor(environ) or environ.get("USER") or environ.get("LOGNAME")
    return named or _service(workload) or local_user()


def _service(workload: Workload) -> str | None:
    """Returns the name by which Kubernetes itself knows the pod's service account."""
    account, namespace = workload.service_account, workload.namespace
    if isinstance(account, str) and isinstance(namespace, str):
        return f"{SERVICE_ACCOUNT}{namespace}:{account}"
    return account if isinstance(account, str) else None


def _git_root(cwd: str) -> str | None:
    path = cwd
    while True:
        if os.path.exists(os.path.join(path, ".git")):
            return path
        parent = os.path.dirname(path)
        if parent == path:
            return None
        path = parent


def _git(root: str) -> tuple[str | None, str | None]:
    """Reads repository and branch from git's files, because starting git would take 5 ms."""
    directory = os.path.join(root, ".git")
    pointer = read_text(directory) if os.path.isfile(directory) else None
    if pointer and pointer.startswith("gitdir:"):  # a worktree or submodule
        directory = os.path.join(root, pointer.removeprefix("gitdir:").strip())
    head = read_text(os.path.join(directory, "HEAD"))
    branch: str | None = None
    if head and head.startswith("ref: refs/heads/"):
        branch = head.removeprefix("ref: refs/heads/")
    common = read_text(os.path.join(directory, "commondir"))
    if common:
        directory = os.path.join(directory, common)
    return _origin(os.path.join(directory, "config")), branch


def _origin(path: str) -> str | None:
    text = read_text(path)
    section = ""
    for line in text.splitlines() if text else ():
        words = line.strip()
        if words.startswith("["):
            section = words
        elif section == '[remote "origin"]' and words.replace(" ", "").startswith("url="):
            return repo_name(words.partition("=")[2].strip())
    return None
