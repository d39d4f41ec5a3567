"""The sealed registry: what it keeps, and that no change to its files gives more trust (trust T5)."""

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.requirements import requirement
from tests.trust.issued import FIXER, registration

from subluminal.contracts.agents import Registration
from subluminal.contracts.vocabulary import TRUST_RANK, AgentState, ProofKind, TrustLevel
from subluminal.core.controls import agents
from subluminal.core.controls.agents import (
    AgentIsRevoked,
    is_revoked,
    register,
    revoke,
    roster,
    standing,
)
from subluminal.core.controls.kill_switch import KillSwitch
from subluminal.state.generation import Generation
from subluminal.trust.levels import base_trust

BEFORE = registration(trust_level=TrustLevel.SYSTEM)
NOW = registration(trust_level=TrustLevel.BASIC, unattested=TrustLevel.UNTRUSTED)
"""The same agent after a person trusted it less."""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def rank(state: Path, agent_id: str = "fixer") -> int:
    """Returns the best trust that the registry gives an agent, by number."""
    known = standing(str(state), agent_id).registration
    return max(TRUST_RANK[base_trust(known, proof)] for proof in ProofKind)


def file(state: Path, name: str) -> Path:
    """Returns the path of `agent-ID`, `index` or `revoked-ID`."""
    agent_id = name.removeprefix("revoked-")
    return state / "agents" / name if agent_id == name else state / "revoked" / agent_id


def test_an_id_that_looks_like_a_file_that_is_being_written(state: Path) -> None:
    """Such an agent is listed, and a new index still says that it is revoked."""
    odd = registration(agent_id="fixer.aside")
    register(str(state), odd)
    assert roster(str(state)).registrations == [odd]
    revoke(str(state), odd)
    (state / "agents" / "index").unlink()
    register(str(state), FIXER)
    (state / "revoked" / "fixer%2e.aside").unlink()
    assert is_revoked(str(state), "fixer.aside")


def test_what_was_registered_is_found(state: Path) -> None:
    assert standing(str(state), "fixer") == agents.Standing()
    assert roster(str(state)) == agents.Roster([], [])
    assert not state.exists(), "asking makes no files"
    register(str(state), FIXER)
    assert standing(str(state), "fixer") == agents.Standing(FIXER)
    register(str(state), NOW)
    assert standing(str(state), "fixer") == agents.Standing(NOW)
    assert sorted(os.listdir(state / "agents")) == ["agent-fixer", "index"]
    assert file(state, "agent-fixer").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "agent_id", ["a/b", "é", "index", "x" * 256, "../x", "agent-fixer", " ", "revoked-x"]
)
def test_any_name_has_a_file_of_its_own(state: Path, agent_id: str) -> None:
    register(str(state), registration(agent_id=agent_id))
    register(str(state), FIXER)
    assert standing(str(state), agent_id).registration == registration(agent_id=agent_id)
    assert {each.agent_id for each in roster(str(state)).registrations} == {agent_id, "fixer"}
    revoke(str(state), registration(agent_id=agent_id))
    assert is_revoked(str(state), agent_id)
    assert not is_revoked(str(state), "fixer")


@requirement("trust:revoked")
def test_a_revoked_agent_never_returns(state: Path) -> None:
    register(str(state), FIXER)
    revoke(str(state), FIXER)
    found = standing(str(state), "fixer")
    assert found.is_revoked
    assert found.registration == msgspec.structs.replace(FIXER, state=AgentState.REVOKED)
    with pytest.raises(AgentIsRevoked):
        register(str(state), FIXER)
    revoke(str(state), FIXER)
    assert is_revoked(str(state), "fixer")
    assert rank(state) == 0
    register(str(state), registration(agent_id="fixer2"))
    assert is_revoked(str(state), "fixer")


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"basic", b"system").replace(b"{", b" {", 1))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


def make_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


HARM: list[Callable[[Path], None]] = [damage, cut, empty, remove, make_directory, make_loop]


@requirement("trust:sealed-registry")
@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("name", ["agent-fixer", "index"])
def test_a_damaged_file_is_as_good_as_none(state: Path, harm: Any, name: str) -> None:
    register(str(state), BEFORE)
    harm(file(state, name))
    found = standing(str(state), "fixer")
    assert (found.registration, found.is_revoked, rank(state)) == (None, False, 0)
    assert bool(found.problem) is (file(state, "agent-fixer").exists() or harm in (make_loop,))
    assert len(roster(str(state)).problems) == bool(found.problem)


@requirement("trust:sealed-registry")
def test_an_older_file_that_is_put_back_does_not_count(state: Path) -> None:
    register(str(state), BEFORE)
    kept = file(state, "agent-fixer").read_bytes()
    register(str(state), NOW)
    file(state, "agent-fixer").write_bytes(kept)
    assert rank(state) == 0
    assert "not the newest" in standing(str(state), "fixer").problem


@requirement("trust:sealed-registry")
def test_another_agents_file_does_not_count(state: Path) -> None:
    register(str(state), registration(agent_id="trusted", trust_level=TrustLevel.SYSTEM))
    register(str(state), NOW)
    shutil.copy(file(state, "agent-trusted"), file(state, "agent-fixer"))
    shutil.copy(file(state, "agent-trusted"), file(state, "agent-stranger"))
    assert rank(state) == rank(state, "stranger") == 0
    assert rank(state, "trusted") == TRUST_RANK[TrustLevel.SYSTEM]
    found = roster(str(state))
    assert [each.agent_id for each in found.registrations] == ["trusted"]
    assert len(found.problems) == 2


@requirement("trust:sealed-registry")
@pytest.mark.parametrize("names", [["agent-fixer"], ["index"], ["agent-fixer", "index"]])
def test_files_of_another_home_do_not_count(state: Path, tmp_path: Path, names: list[str]) -> None:
    other = tmp_path / "other"
    register(str(other), BEFORE)
    register(str(state), NOW)
    for name in names:
        shutil.copy(file(other, name), file(state, name))
    assert rank(state) == 0


@requirement("trust:revoked")
@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize(
    "names",
    [
        *itertools.combinations(["agent-fixer", "revoked-fixer", "index"], 1),
        ("agent-fixer", "revoked-fixer"),
        ("agent-fixer", "index"),
    ],
)
def test_damage_brings_no_revoked_agent_back(
    state: Path, harm: Any, names: tuple[str, ...]
) -> None:
    register(str(state), BEFORE)
    revoke(str(state), BEFORE)
    for name in names:
        harm(file(state, name))
    assert is_revoked(str(state), "fixer")
    assert standing(str(state), "fixer").is_revoked
    assert rank(state) == 0
    with pytest.raises((AgentIsRevoked, OSError)):
        register(str(state), BEFORE)
    assert is_revoked(str(state), "fixer")


@requirement("trust:revoked")
@pytest.mark.parametrize("kept", [["agent-fixer"], ["index"], ["agent-fixer", "index"]])
def test_files_from_before_bring_no_revoked_agent_back(state: Path, kept: list[str]) -> None:
    register(str(state), BEFORE)
    before = {name: file(state, name).read_bytes() for name in kept}
    revoke(str(state), BEFORE)
    for name, data in before.items():
        file(state, name).write_bytes(data)
    assert is_revoked(str(state), "fixer")
    assert rank(state) == 0
    register(str(state), registration(agent_id="fixer2"))
    file(state, "revoked-fixer").unlink()
    assert is_revoked(str(state), "fixer"), "the next change of the index has healed it"


@requirement("trust:revoked")
@pytest.mark.parametrize("left", ["agents", "revoked"])
def test_either_directory_is_enough(state: Path, left: str) -> None:
    register(str(state), BEFORE)
    revoke(str(state), BEFORE)
    shutil.rmtree(state / {"agents": "revoked", "revoked": "agents"}[left])
    assert is_revoked(str(state), "fixer")
    assert rank(state) == 0
    with pytest.raises(AgentIsRevoked):
        register(str(state), BEFORE)
    view = KillSwitch(str(state)).view("run-1", "fixer")
    assert view.find("git", "push") is not None


@requirement("trust:revoked")
def test_what_was_kept_of_a_revoked_agent_is_shown(state: Path) -> None:
    register(str(state), FIXER)
    revoke(str(state), FIXER)
    file(state, "agent-fixer").unlink()
    revoked = msgspec.structs.replace(FIXER, state=AgentState.REVOKED)
    assert standing(str(state), "fixer").registration == revoked
    assert roster(str(state)).registrations == [revoked]
    empty(file(state, "revoked-fixer"))
    assert standing(str(state), "fixer") == agents.Standing(None, True)
    assert roster(str(state)) == agents.Roster([], [])


@requirement("trust:sealed-registry")
def test_after_a_damaged_index_each_agent_is_registered_again(state: Path) -> None:
    register(str(state), BEFORE)
    register(str(state), registration(agent_id="other"))
    revoke(str(state), registration(agent_id="gone"))
    empty(file(state, "index"))
    register(str(state), NOW)
    assert standing(str(state), "fixer").registration == NOW
    assert rank(state, "other") == 0
    assert is_revoked(str(state), "gone")


def test_a_home_that_is_no_directory_has_nobody(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    assert standing(str(tmp_path / "state"), "fixer") == agents.Standing()


@requirement("trust:revoked")
def test_if_the_revoked_cannot_be_found_out_everybody_is(state: Path) -> None:
    state.mkdir()
    (state / "revoked").write_text("")
    assert is_revoked(str(state), "fixer")
    assert rank(state) == 0


@requirement("trust:noticed")
def test_every_change_moves_the_number_once_the_files_are_there(state: Path) -> None:
    number = Generation(str(state / "kill" / "generation"))
    seen: list[tuple[int, Registration | None]] = []

    def look() -> None:
        seen.append((number.words[0], standing(str(state), "fixer").registration))

    look()
    register(str(state), BEFORE)
    look()
    register(str(state), NOW)
    look()
    revoke(str(state), NOW)
    look()
    assert len({moved for moved, _ in seen}) == 4
    assert [known and known.state for _, known in seen] == [None, "active", "active", "revoked"]


@requirement("trust:noticed")
def test_a_revocation_does_not_wait_for_a_writer_that_is_suspended(state: Path) -> None:
    """The file and the number come before the lock that other writers hold."""
    import fcntl
    import threading

    register(str(state), FIXER)
    number = Generation(str(state / "kill" / "generation"))
    before = number.words[0]
    fd = os.open(state / "agents", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    thread = threading.Thread(target=revoke, args=(str(state), FIXER))
    thread.start()
    while number.words[0] == before:
        assert thread.is_alive()
    assert is_revoked(str(state), "fixer")
    assert thread.is_alive()
    os.close(fd)
    thread.join()
    file(state, "revoked-fixer").unlink()
    assert is_revoked(str(state), "fixer"), "the index says so too"


def test_writers_do_not_lose_each_others_agents(state: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    names = [f"agent {number}" for number in range(20)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: register(str(state), registration(agent_id=name)), names))
    assert [each.agent_id for each in roster(str(state)).registrations] == sorted(names)
