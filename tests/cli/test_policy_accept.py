"""`sub policy accept`: what it accepts, for whom, and that no agent can run it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.shim.household import deny, policy

from subluminal.config.places import places
from subluminal.core.policies.pins import Pin, SeenPolicy
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.loading import parse_bundle


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".subluminal").mkdir()
    path = tmp_path / ".subluminal" / "policy.yaml"
    path.write_text(policy())
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def pinned(repository: Path, own_home: Path) -> Pin:
    """A run that first saw a stricter policy than stands there now."""
    stricter = compile_bundle(parse_bundle(policy(deny("rm")).encode(), "p").bundle)
    pin = Pin(places({"SUB_HOME": str(own_home)}), "run-1")
    assert pin.look(SeenPolicy(str(repository), stricter))
    return pin


def test_nothing_to_accept(sub: Any, repository: Path) -> None:
    assert sub("policy", "accept") == (
        0,
        "nothing to accept: no run started under another version\n",
        "",
    )


def test_the_nearest_policy_is_accepted_once(sub: Any, repository: Path, pinned: Pin) -> None:
    assert sub("policy", "accept") == (0, f"`{repository}` is now in force for 1 run\n", "")
    assert pinned.look(None), "the run's shims see it"
    assert pinned.first_seen is not None
    assert b"no-rm" not in pinned.first_seen.snapshot.to_json()
    assert "nothing to accept" in sub("policy", "accept").out


def test_a_named_file_and_json(sub: Any, repository: Path, pinned: Pin) -> None:
    ran = sub("policy", "accept", "--json", ".subluminal/policy.yaml")
    answer = json.loads(ran.out)
    assert (ran.code, answer["file"], answer["runs_accepted"]) == (0, str(repository), 1)


def test_another_repository_s_pin_stays(
    sub: Any, repository: Path, pinned: Pin, tmp_path: Path
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(policy())
    assert "nothing to accept" in sub("policy", "accept", str(other)).out
    assert not pinned.look(None)


def test_an_invalid_policy_is_not_accepted(sub: Any, repository: Path, pinned: Pin) -> None:
    repository.write_text("policy_id: 1\n")
    ran = sub("policy", "accept")
    assert ran.code == 2
    assert ran.err.startswith("error: ")
    assert not pinned.look(None)


def test_no_policy_here(sub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    ran = sub("policy", "accept")
    assert ran.code == 2
    assert ran.err == (
        "error: there is no repository policy here\n"
        "hint: name the file, or go to the repository that has `.subluminal/policy.yaml`\n"
    )


@pytest.mark.parametrize("name", ["SUB_RUN_ID", "CLAUDECODE", "CODEX_THREAD_ID", "AI_AGENT"])
def test_an_agent_cannot_accept(
    sub: Any, repository: Path, pinned: Pin, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "1")
    ran = sub("policy", "accept")
    assert ran.code == 2
    assert "`sub policy accept` is for a person" in ran.err
    assert not pinned.look(None)
