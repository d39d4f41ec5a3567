"""The level of a run whose lock is busy, whose state is gone, or whose level was damaged.

Nothing that may bring text of strangers leaves before the run is lowered (kernel.md, section 3).
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.core.test_taint import SEND, WEB, events, level, make, policy, tool_call
from tests.hosts import host_in
from tests.policy.bundles import rule
from tests.requirements import requirement

from subluminal.config.places import places
from subluminal.contracts.vocabulary import Action, ReasonCode, Taint
from subluminal.core.host import Host
from subluminal.core.runs.lost_state import renew_state
from subluminal.policy.snapshot import Snapshot
from subluminal.state import layout
from subluminal.state.run_state import RunState
from subluminal.state.storage import state_path

PASSES = {"decision_on_error": "ALLOW"}
MILD = rule("taint", "mild", match={"tool_name": {"glob": ["mild"]}}, lower_to="TRUSTED")


def state_dir(home: Path) -> str:
    return places({"SUB_HOME": str(home)}).state


@contextmanager
def held_lock(home: Path) -> Iterator[None]:
    """Another process holds the lock of the run."""
    command = [sys.executable, "-m", "tests.state.worker", "hold", state_dir(home), "run-1"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        yield
        other.communicate(b"\n")


def changes(home: Path) -> list[dict[str, Any]]:
    return [each["taint"] for each in events(home, "taint_changed")]


def begun(home: Path, *rules: dict[str, Any], **changes: Any) -> Host:
    """A host whose run has made one call."""
    host = host_in(home, policy(*rules, **changes))
    make(host, "files", "read")
    return host


@requirement("taint:before-it-leaves")
@pytest.mark.parametrize("on_error", ["ALLOW", "BLOCK"])
def test_the_run_is_lowered_although_another_process_holds_its_lock(
    tmp_path: Path, on_error: str
) -> None:
    """Every process meets the level before the lock is free again, and it is on record."""
    host = begun(tmp_path, WEB, SEND, defaults={"decision_on_error": on_error})
    with held_lock(tmp_path):
        passed = host.begin(tool_call("web", "fetch"), b"{}").is_allowed
        assert passed == (on_error == "ALLOW")
        assert level(tmp_path) is (Taint.UNTRUSTED if passed else Taint.SYSTEM)
    other = host_in(tmp_path, policy(WEB, SEND))
    ruling = other.begin(tool_call("mail", "send"), b"{}")
    assert ruling.is_allowed == (not passed)
    host.close()
    other.close()
    if passed:
        assert ruling.decision.summary.endswith(
            "UNTRUSTED since call 1 (lowered while its state was locked)"
        )
        (change,) = changes(tmp_path)
        assert change == {
            "from": "SYSTEM",
            "to": "UNTRUSTED",
            "seq": 1,
            "by": "rule",
            "server_name": "web",
            "tool_name": "fetch",
            "reason": "no rule could judge the call",
        }
    else:
        assert changes(tmp_path) == []


def test_a_resource_lowers_although_another_process_holds_the_lock(tmp_path: Path) -> None:
    host = begun(tmp_path, WEB, SEND)
    with held_lock(tmp_path):
        assert host.read_from("web", "resources/read") == ""
        assert level(tmp_path) is Taint.UNTRUSTED
        assert host.read_from("web", "resources/read") == ""
    assert make(host, "mail", "send") is Action.BLOCK
    host.close()
    assert [each["rule_id"] for each in changes(tmp_path)] == ["web"]


def test_batches_and_messages_that_nobody_can_read_lower_without_the_lock(tmp_path: Path) -> None:
    host = begun(tmp_path, MILD, WEB, SEND, defaults=PASSES)
    batch = [(tool_call("files", "mild"), b"{}"), (tool_call("files", "read"), b"{}")]
    with held_lock(tmp_path):
        assert all(each.is_allowed for each in host.begin_batch(batch))
        assert level(tmp_path) is Taint.TRUSTED
        ambiguous = ReasonCode.AMBIGUOUS_MESSAGE
        assert host.begin_undecidable(tool_call("web", "?"), ambiguous, "two ways").is_allowed
        assert level(tmp_path) is Taint.UNTRUSTED
    host.close()
    assert [each["to"] for each in changes(tmp_path)] == ["TRUSTED", "UNTRUSTED"]


def test_the_lowest_of_what_was_lowered_without_the_lock_holds(tmp_path: Path) -> None:
    host = begun(tmp_path, MILD, WEB, SEND, defaults=PASSES)
    with held_lock(tmp_path):
        host.begin(tool_call("files", "mild"), b"{}")
        assert level(tmp_path) is Taint.TRUSTED
        host.begin(tool_call("web", "fetch"), b"{}")
        host.begin(tool_call("files", "mild"), b"{}")
        assert level(tmp_path) is Taint.UNTRUSTED
    make(host, "web", "fetch")
    host.close()
    assert [(each["from"], each["to"]) for each in changes(tmp_path)] == [
        ("SYSTEM", "TRUSTED"),
        ("TRUSTED", "UNTRUSTED"),
    ]


@requirement("taint:before-it-leaves")
def test_it_survives_the_process_that_lowered_the_run(own_home: Path) -> None:
    begun(own_home, WEB, SEND).close()
    lowering = [sys.executable, "-m", "tests.core.tainted", str(own_home), "locked"]
    with held_lock(own_home):
        lowered = subprocess.run(lowering, capture_output=True, text=True, check=False)
        assert lowered.stdout == "passed\n", lowered.stderr
        assert lowered.returncode == -9
        assert level(own_home) is Taint.UNTRUSTED
    again = host_in(own_home, policy(WEB, SEND))
    assert make(again, "mail", "send") is Action.BLOCK
    again.close()
    assert [each["to"] for each in changes(own_home)] == ["UNTRUSTED"]


def low_start() -> Snapshot:
    return policy(WEB, SEND, defaults={"decision_on_error": "BLOCK", "taint": "UNTRUSTED"})


def test_a_shim_that_joins_lowers_the_run_although_its_lock_is_held(tmp_path: Path) -> None:
    host = begun(tmp_path, WEB, SEND)
    with held_lock(tmp_path):
        joining = host_in(tmp_path, low_start())
        make(joining, "files", "read")
        assert level(tmp_path) is Taint.UNTRUSTED
    assert make(host, "mail", "send") is Action.BLOCK
    host.close()
    joining.close()
    assert [each["reason"] for each in changes(tmp_path)] == ["the run starts so"]


def test_a_policy_that_comes_into_force_lowers_the_run_although_its_lock_is_held(
    tmp_path: Path,
) -> None:
    host = begun(tmp_path, WEB, SEND)
    run = host.open_run()
    with held_lock(tmp_path):
        run.start_at(Taint.TRUSTED)
        run.start_at(Taint.TRUSTED)
    assert level(tmp_path) is Taint.TRUSTED
    with RunState.open(state_dir(tmp_path), "run-1", threads=True) as state, state.locked():
        state.taint.put(0)
    with held_lock(tmp_path):
        run.start_at(Taint.UNTRUSTED)
    assert level(tmp_path) is Taint.SYSTEM  # a person's word goes before it
    host.close()
    assert [each["to"] for each in changes(tmp_path)] == ["TRUSTED"]


def test_a_program_lowers_the_run_although_its_lock_is_held(tmp_path: Path) -> None:
    host = begun(tmp_path, WEB, SEND)
    with held_lock(tmp_path):
        assert host.lower_taint(Taint.TRUSTED, source="wiki") is Taint.TRUSTED
        assert host.taint() is Taint.TRUSTED
    host.close()
    (change,) = changes(tmp_path)
    assert (change["by"], change["reason"]) == ("sdk", "wiki")


# Without a state


def without_state(home: Path) -> None:
    (home / "state").mkdir(parents=True)
    (home / "state" / "runs").write_text("not a directory")


@requirement("taint:no-state")
def test_without_a_state_nothing_that_may_lower_the_run_is_forwarded(tmp_path: Path) -> None:
    without_state(tmp_path)
    host = host_in(tmp_path, policy(WEB, SEND, defaults=PASSES))
    assert make(host, "files", "read") is Action.ALLOW
    ruling = host.begin(tool_call("web", "fetch"), b"{}")
    assert ruling.decision.action is Action.BLOCK
    assert ruling.decision.reason_code == ReasonCode.EVALUATION_ERROR
    assert "the level of the run cannot be lowered" in ruling.decision.summary
    assert "the level of the run cannot be lowered" in host.read_from("web", "resources/read")
    assert host.read_from("files", "resources/read") == ""
    call = tool_call("web", "?")
    assert not host.begin_undecidable(call, ReasonCode.AMBIGUOUS_MESSAGE, "two ways").is_allowed
    batch = [(tool_call("files", "read"), b"{}"), (tool_call("web", "fetch"), b"{}")]
    assert [each.is_allowed for each in host.begin_batch(batch)] == [False, False]
    assert [each.is_allowed for each in host.begin_batch(batch[:1])] == [True]
    assert host.taint() is Taint.UNTRUSTED
    host.close()
    actions = [each["decision"]["action"] for each in events(tmp_path, "tool_call_decision")]
    assert actions == ["ALLOW", "BLOCK", "BLOCK", "BLOCK", "BLOCK", "ALLOW"]


def test_observe_mode_refuses_nothing_without_a_state(tmp_path: Path) -> None:
    without_state(tmp_path)
    host = host_in(tmp_path, policy(WEB, SEND, mode="observe"))
    assert make(host, "web", "fetch") is Action.ALLOW
    assert host.read_from("web", "resources/read") == ""
    host.close()


@requirement("taint:made-anew")
def test_a_state_that_is_made_late_is_untrusted(tmp_path: Path) -> None:
    """Calls passed while no state could be made, and nobody knows what they brought."""
    without_state(tmp_path)
    host = host_in(tmp_path, policy(SEND, defaults=PASSES))
    assert make(host, "files", "read") is Action.ALLOW
    (tmp_path / "state" / "runs").unlink()
    ruling = host.begin(tool_call("mail", "send"), b"{}")
    assert ruling.decision.action is Action.BLOCK
    assert "UNTRUSTED since the start (its state was made anew)" in ruling.decision.summary
    host.close()
    (started,) = events(tmp_path, "run_start")
    assert started["run"]["taint"] == "UNTRUSTED"


def test_a_run_that_made_no_call_without_its_state_starts_as_it_should(tmp_path: Path) -> None:
    without_state(tmp_path)
    host = host_in(tmp_path, policy(SEND, defaults=PASSES))
    host.open_run()
    (tmp_path / "state" / "runs").unlink()
    assert make(host, "mail", "send") is Action.ALLOW
    host.close()


@requirement("taint:made-anew")
def test_a_state_that_was_made_anew_is_untrusted(tmp_path: Path) -> None:
    begun(tmp_path, WEB, SEND).close()
    where = places({"SUB_HOME": str(tmp_path)})
    (path,) = (Path(where.state) / "runs").iterdir()
    path.unlink()
    assert renew_state(where, "run-1")
    again = host_in(tmp_path, policy(WEB, SEND))
    ruling = again.begin(tool_call("mail", "send"), b"{}")
    assert "UNTRUSTED since call 1 (its state was made anew)" in ruling.decision.summary
    again.close()


# Damage


def damage(home: Path, word: int) -> None:
    with RunState.open(state_dir(home), "run-1", threads=True) as state, state.locked():
        state._words[layout.W_TAINT] = word


@requirement("taint:damaged")
@pytest.mark.parametrize("word", [-7, 4, 32 | 1, 1 << 40])
def test_a_damaged_level_is_the_lowest_and_on_record(tmp_path: Path, word: int) -> None:
    host = begun(tmp_path, WEB, SEND)
    damage(tmp_path, word)
    ruling = host.begin(tool_call("mail", "send"), b"{}")
    assert ruling.decision.action is Action.BLOCK
    assert ruling.decision.summary.endswith(
        "UNTRUSTED since call 2 (the record of its level was damaged)"
    )
    assert make(host, "mail", "send") is Action.BLOCK
    host.close()
    (change,) = changes(tmp_path)
    assert change["to"] == "UNTRUSTED"
    assert change["reason"] == "the record of its level was damaged"


def test_a_batch_records_a_damaged_level_once(tmp_path: Path) -> None:
    host = begun(tmp_path, WEB, SEND)
    damage(tmp_path, -7)
    batch = [(tool_call("files", "read"), b"{}"), (tool_call("files", "read"), b"{}")]
    assert all(each.is_allowed for each in host.begin_batch(batch))
    host.close()
    assert len(changes(tmp_path)) == 1


def test_a_state_that_was_cut_lets_nothing_of_strangers_pass(tmp_path: Path) -> None:
    host = begun(tmp_path, WEB, SEND, defaults=PASSES)
    os.truncate(state_path(state_dir(tmp_path), "run-1"), 4_096)
    assert make(host, "web", "fetch") is Action.BLOCK
    assert make(host, "files", "read") is Action.ALLOW
    assert "cannot be lowered" in host.read_from("web", "prompts/get")
    assert host.taint() is Taint.UNTRUSTED
    host.close()
