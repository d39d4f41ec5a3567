"""What each CI system's variables mean, from tests/cases/workload/ci.yaml."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import to_builtins
from tests.requirements import requirement

from subluminal.trust.identity.agent import identity_of
from subluminal.trust.identity.ci_systems import CI_SYSTEMS, ci_job, repo_name
from subluminal.trust.identity.pods import PodFiles
from subluminal.trust.identity.workload import find_workload

CASES = Path(__file__).parents[2] / "cases" / "workload" / "ci.yaml"
NOWHERE = PodFiles("/nonexistent", "/nonexistent")


def cases() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(CASES.read_text()))


@requirement("001-8.2:ci")
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["case"])
def test_the_workload_of_a_job(case: dict[str, Any], tmp_path: Path) -> None:
    environ = dict(case["environ"])
    if "event" in case:
        assert environ["GITHUB_EVENT_PATH"] == "$EVENT"
        environ["GITHUB_EVENT_PATH"] = str(tmp_path / "event.json")
        (tmp_path / "event.json").write_text(json.dumps(case["event"]))
    work = tmp_path / "work"
    work.mkdir()
    if "git" in case:
        (work / ".git").mkdir()
        (work / ".git" / "HEAD").write_text(case["git"] + "\n")
        (work / ".git" / "config").write_text(
            '[remote "origin"]\n\turl = git@example.org:clone/x.git\n'
        )
    found = to_builtins(find_workload(environ, str(work), NOWHERE))
    found.pop("repo_path", None)
    assert found == case["want"]


def test_every_system_has_a_branch_a_pull_request_and_a_tag() -> None:
    told = {case["want"]["ci_provider"]: "" for case in cases()}
    for case in cases():
        told[case["want"]["ci_provider"]] += case["case"] + "\n"
    assert sorted(told) == sorted(system.provider for system in CI_SYSTEMS)
    for words in told.values():
        assert " tag" in words
        assert "request" in words
    for system in CI_SYSTEMS:
        used = {name for case in cases() for name in case["environ"]}
        assert {*system.marks, *system.job_id, *system.repo, *system.branch, *system.tag} <= used
        assert used & {*system.actor}


@pytest.mark.parametrize(
    ("provider", "who"),
    [
        ("github", "octocat"),
        ("gitlab", "ada"),
        ("jenkins", "ada"),
        ("circleci", "ada"),
        ("buildkite", "Ada"),
        ("azure", "Ada"),
        ("bitbucket", "{6a7b5f4e-0a0f-4e39-8d7b-3b1fb2d0b1a1}"),
    ],
)
def test_who_started_the_job(provider: str, who: str) -> None:
    """Not the user that every job of the machine runs as; SUB_PRINCIPAL comes before both."""
    environ = next(c["environ"] for c in cases() if c["want"]["ci_provider"] == provider)
    assert identity_of({**environ, "USER": "runner"}, "/").principal == who
    assert identity_of({**environ, "SUB_PRINCIPAL": "svc"}, "/").principal == "svc"


def test_a_pull_request_s_event_may_be_anything(tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    environ = {"GITHUB_ACTIONS": "1", "GITHUB_HEAD_REF": "main", "GITHUB_EVENT_PATH": str(event)}
    deep = b'{"z":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for text in (b"", b"\xff", b"[]", b'{"pull_request":7}', b'{"pull_request":{"head":{}}}', deep):
        event.write_bytes(text)
        job = ci_job(environ)
        assert job is not None
        assert job.branch == "?:main"
    event.unlink()
    os.mkfifo(event)
    job = ci_job(environ)
    assert job is not None
    assert job.branch == "?:main"


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
