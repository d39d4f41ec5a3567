"""Policies without a shim: when files are read, what replaces what, and what is in force for a run."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.shim.household import deny, policy

from subluminal.config.places import Places, places
from subluminal.contracts.decision import PolicyRef
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Client, Env
from subluminal.core.helper_process import Helper
from subluminal.core.policies import compile_helper
from subluminal.core.policies import layer as policy_layer
from subluminal.core.policies.layer import Load
from subluminal.core.policies.watching import LOOK_EVERY_MS, Policies

WHO = Identity(agent_id="a", client=Client.CUSTOM, env=Env.DEV)


@pytest.fixture
def where(tmp_path: Path) -> Places:
    (tmp_path / "home").mkdir()
    return places({"SUB_HOME": str(tmp_path / "home")})


@pytest.fixture
def make(where: Places, tmp_path: Path) -> Callable[..., Policies]:
    (tmp_path / ".git").mkdir()
    return lambda explicit=None: Policies(where, WHO, str(tmp_path), explicit)


def write(path: str, text: str) -> None:
    """Makes a file old enough that its time can be relied on."""
    Path(path).parent.mkdir(exist_ok=True)
    aside = Path(f"{path}.aside")
    aside.write_text(text)
    at = time.time_ns() - 10**9
    os.utime(aside, ns=(at, at))
    aside.replace(path)


def settled(policies: Policies) -> list[Load]:
    """Checks the files now, and waits for the compilers."""
    loads = policies.poll(0, force=True)
    deadline = time.monotonic() + 20
    while any(layer._is_busy for layer in policies._layers):
        assert time.monotonic() < deadline
        loads += policies.poll(0)
    return loads


def hashes(policies: Policies, run_id: str = "run") -> list[str]:
    return [ref.policy_hash for ref in policies.engine_for(run_id).policies]


def test_files_are_looked_at_every_so_often(make: Callable[..., Policies], where: Places) -> None:
    policies = make()
    assert policies.poll(0) == []
    write(where.policy, policy())
    assert policies.poll(LOOK_EVERY_MS - 1) == []
    assert not policies.loading
    policies.poll(LOOK_EVERY_MS)
    assert policies.loading
    policies.close()
    assert not policies.loading


def test_an_engine_is_made_anew_only_when_something_changed(
    make: Callable[..., Policies], where: Places
) -> None:
    write(where.policy, policy())
    policies = make()
    assert [load.problem for load in settled(policies)] == [""]
    engine, generation = policies.engine_for("run"), policies.generation
    assert settled(policies) == []
    assert policies.engine_for("run") is engine
    assert policies.generation == generation
    write(where.policy, policy(deny("rm")))
    assert len(settled(policies)) == 1
    assert policies.engine_for("run") is not engine
    policies.forget("run")


def test_touching_a_file_changes_nothing(make: Callable[..., Policies], where: Places) -> None:
    write(where.policy, policy())
    policies = make()
    settled(policies)
    os.utime(where.policy)
    assert settled(policies) == []


def test_a_file_too_young_to_trust_its_time_is_read_again(
    make: Callable[..., Policies], where: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File times have ticks: two writes within one have the same."""
    monkeypatch.setattr(policy_layer, "_RACY_NS", 10**12)
    write(where.policy, policy(deny("aa")))
    policies = make()
    settled(policies)
    stamp = os.stat(where.policy)
    Path(where.policy).write_text(policy(deny("bb")))
    os.utime(where.policy, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert len(settled(policies)) == 1


def test_wrong_gone_and_back(make: Callable[..., Policies], where: Places) -> None:
    write(where.policy, policy())
    policies = make()
    settled(policies)
    good = hashes(policies)
    write(where.policy, "rules: 1\n")
    [load] = settled(policies)
    assert load.snapshot is None
    assert load.problem
    assert hashes(policies) == good
    assert policies.refusal is None
    os.unlink(where.policy)
    assert settled(policies) == []
    assert hashes(policies) == good
    write(where.policy, policy())
    assert [load.problem for load in settled(policies)] == [""]


def test_a_compiler_that_cannot_be_started_is_tried_again(
    make: Callable[..., Policies], where: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    write(where.policy, policy())
    policies = make()
    with monkeypatch.context() as patch:
        patch.setattr(compile_helper, "start", fail)
        [load] = settled(policies)
        assert load.problem == "cannot be compiled: resource temporarily unavailable"
    assert policies.refusal is not None
    assert [load.problem for load in settled(policies)] == [""]
    assert policies.refusal is None


def test_a_compiler_that_hangs_is_ended(
    make: Callable[..., Policies], where: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_helper, "MAX_SECONDS", 0)
    write(where.policy, policy())
    policies = make()
    loads = settled(policies)
    assert [load.problem for load in loads] == ["compiling it took longer than 0 s"]


def first_seen(make: Callable[..., Policies], place: Path) -> tuple[str, Policies, str]:
    """A repository's policy that run `one` has seen: its path, the policies, its hash."""
    path = str(place / ".subluminal" / "policy.yaml")
    write(path, policy(deny("rm")))
    policies = make()
    settled(policies)
    [first] = hashes(policies, "one")
    return path, policies, first


def test_two_runs_of_one_process_have_their_own_first_sight(
    make: Callable[..., Policies], tmp_path: Path
) -> None:
    path, policies, first = first_seen(make, tmp_path)
    write(path, policy())
    settled(policies)
    [second] = hashes(policies, "two")
    assert first != second
    assert hashes(policies, "one") == [second, first]


def test_a_pin_that_this_home_did_not_write_is_not_believed(
    make: Callable[..., Policies], where: Places, tmp_path: Path
) -> None:
    path, policies, first = first_seen(make, tmp_path)
    (Path(where.state) / "pins" / "one").write_bytes(b"forged\n{}")
    write(path, policy())
    settled(policies)
    assert first in hashes(policies, "one")


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The compilers that are started from now on."""
    started: list[str] = []
    start = compile_helper.start

    def counting(name: str, bundle: bytes, *demands: Any) -> Helper:
        started.append(name)
        return start(name, bundle, *demands)

    monkeypatch.setattr(compile_helper, "start", counting)
    return started


def test_runs_that_begin_at_once_compile_once(
    make: Callable[..., Policies], where: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred compilers on two CPUs took longer than any run would wait."""
    started = counted(monkeypatch)
    write(where.policy, policy(deny("rm")))
    crowd = [make() for _ in range(5)]
    for policies in crowd:
        assert policies.poll(0, force=True) == []
        assert policies.loading
    found = [settled(policies) for policies in crowd]
    assert [len(loads) for loads in found] == [1] * 5
    assert len(started) == 1
    for policies in crowd:
        policies.close()


def test_a_process_suspended_while_it_compiles_does_not_block_others(
    make: Callable[..., Policies], where: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = counted(monkeypatch)
    write(where.policy, policy(deny("rm")))
    stopped, other = make(), make()
    stopped.poll(0, force=True)
    monkeypatch.setattr(policy_layer, "_TURN_S", 0.0)
    assert len(settled(other)) == 1
    assert len(started) == 2
    stopped.close()
    other.close()


def test_the_turn_of_one_that_ends_early_is_another_s(
    make: Callable[..., Policies], where: Places
) -> None:
    write(where.policy, policy(deny("rm")))
    first, second = make(), make()
    first.poll(0, force=True)
    second.poll(0, force=True)
    first.close()
    assert len(settled(second)) == 1
    second.close()


@pytest.mark.parametrize("is_cached", [False, True])
def test_a_policy_replaces_another_only_when_its_file_has_been_still_for_a_while(
    make: Callable[..., Policies],
    where: Places,
    monkeypatch: pytest.MonkeyPatch,
    is_cached: bool,
) -> None:
    """Half a policy may compile, and the compiler may be faster than whoever writes the file."""
    texts = [policy(deny("one"), deny("rm")), policy(deny("two"))]
    if is_cached:
        write(where.policy, texts[1])
        settled(make())
    write(where.policy, texts[0])
    policies = make()
    settled(policies)
    before = hashes(policies)
    monkeypatch.setattr(policy_layer, "_STILL_NS", 3_600 * 10**9)
    write(where.policy, texts[1])
    policies.poll(0, force=True)
    (layer,) = policies._layers
    deadline = time.monotonic() + 20
    while layer._ready is None:
        assert time.monotonic() < deadline
        assert policies.poll(0) == []
    assert policies.poll(0, force=True) == []
    assert hashes(policies) == before
    monkeypatch.undo()
    assert [load.problem for load in settled(policies)] == [""]
    assert hashes(policies) != before


def test_a_door_with_a_pack_asks_it_beside_the_layers(where: Places, tmp_path: Path) -> None:
    write(where.policy, policy(deny("push")))
    pack = PolicyRef(policy_id="pack:bank", policy_version="1", policy_hash="f" * 64)
    policies = Policies(where, WHO, str(tmp_path), pack=pack)
    settled(policies)

    engine = policies.engine_for("run")
    assert engine.asks_kernel
    assert [each.layer for each in engine.policies] == ["pack", "user"]


def test_a_snapshot_in_the_cache_answers_for_its_own_text_only(
    make: Callable[..., Policies], where: Places
) -> None:
    """Copying a milder policy's snapshot over a stricter one's must change nothing."""
    cache = Path(where.cache) / "policies"
    write(where.policy, policy(deny("rm")))
    settled(make())
    (strict,) = cache.iterdir()
    before = hashes_in_force(make())
    write(where.policy, policy())
    settled(make())
    (mild,) = set(cache.iterdir()) - {strict}
    strict.write_bytes(mild.read_bytes())
    write(where.policy, policy(deny("rm")))
    assert hashes_in_force(make()) == before


def hashes_in_force(policies: Policies) -> list[str]:
    """Waits for the compilers, and returns the hashes of the policies in force."""
    settled(policies)
    return hashes(policies)


def test_a_forked_child_waits_for_a_policy_that_its_parent_was_compiling(
    make: Callable[..., Policies], where: Places
) -> None:
    """One thread of the child looks at the files; the others must not go on without the policy."""
    write(where.policy, policy(deny("rm")))
    policies = make()
    policies.poll(0)
    (layer,) = policies._layers
    inherited = layer._compiling
    assert inherited is not None
    policies.drop_inherited()
    assert policies.loading, "nobody has looked yet"
    settled(policies)
    assert not policies.loading
    assert len(hashes(policies)) == 1
    os.waitpid(inherited.pid, 0)
