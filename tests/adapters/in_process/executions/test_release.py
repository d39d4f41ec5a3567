"""`sub intent release`: a person frees an execution that is unknown (kernel contract, section 2)."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.in_process.executions.claimants import Claimant, entry, hash_of
from tests.cli.conftest import sub as sub  # the fixture that runs a command
from tests.requirements import requirement

from subluminal.adapters.in_process.executions import KeptExecutions
from subluminal.config.places import Places
from subluminal.core.runs.names import journal_dir
from subluminal.journal.reading import files_in, lines_of
from subluminal.kernel.executions import ExecutionStatus

HASH = hash_of("one")


@pytest.fixture
def ledger(setting: str, opened: Callable[[str], KeptExecutions], home: Places) -> KeptExecutions:
    """The ledger that the home's settings name."""
    made = opened(setting)
    os.makedirs(home.home, 0o700, exist_ok=True)
    Path(home.settings).write_text(f'[kernel]\nexecutions = "{setting}"\n')
    return made


@pytest.fixture
def unknown(ledger: KeptExecutions, setting: str, home: Places) -> KeptExecutions:
    """The ledger, after a claimant was killed in its handler."""
    with Claimant(setting, home, "one") as claimant:
        claimant.reach("handling")
        claimant.kill()
    claimant.wait_for(lambda: ledger.entries(ExecutionStatus.UNKNOWN, 1))
    return ledger


def events(home: Places, run_id: str) -> list[dict[str, Any]]:
    lines = lines_of(sorted(files_in(journal_dir(home, run_id), "")))
    return [event for line in lines if (event := json.loads(line))["type"] == "intent_released"]


@requirement("kernel:person-frees")
def test_a_person_frees_an_unknown_execution(
    sub: Any, unknown: KeptExecutions, home: Places
) -> None:
    words = ("intent", "release", HASH[:8], "--reason", "the bank has no such refund")
    assert sub(*words, "--json").code == 0
    (event,) = events(home, "operator")
    assert event["intent"] == {
        "intent_hash": HASH,
        "intent_kind": "pix.charge.refund",
        "session_id": "claimant",
        "claimed_at": "2026-11-16T00:00:00.000Z",
        "by": event["principal"],
        "reason": "the bank has no such refund",
    }
    assert unknown.check(HASH) is None
    assert unknown.claim(entry("one")) is None


def test_what_it_prints(sub: Any, unknown: KeptExecutions, home: Places) -> None:
    said = json.loads(sub("intent", "release", HASH, "--reason", "r", "--json").out)
    holder = said.pop("holder")
    assert isinstance(holder["pid"], int)
    assert holder["host"] == os.uname().nodename
    assert said == {
        "intent_hash": HASH,
        "intent_kind": "pix.charge.refund",
        "session_id": "claimant",
        "claimed_at": "2026-11-16T00:00:00.000Z",
        "status": "unknown",
        "by": said["by"],
        "reason": "r",
    }


def test_a_line_for_a_person(sub: Any, ledger: KeptExecutions) -> None:
    ledger.claim(entry("one"))
    ledger.finish(HASH, ExecutionStatus.UNKNOWN)
    ran = sub("intent", "release", HASH, "--reason", "r")
    assert ran.err == ""
    assert ran.out == (
        "released: `pix.charge.refund` of 2026-11-16T00:00:00.000Z, which process"
        f" {os.getpid()} on `{os.uname().nodename}` claimed, may execute again\n"
    )


def test_the_run_that_claimed_gets_the_event(
    sub: Any, ledger: KeptExecutions, home: Places
) -> None:
    os.makedirs(journal_dir(home, "run-1"), 0o700)
    ledger.claim(entry("one", session_id="run-1"))
    ledger.finish(HASH, ExecutionStatus.UNKNOWN)
    assert sub("intent", "release", HASH, "--reason", "r").code == 0
    assert len(events(home, "run-1")) == 1


@requirement("kernel:person-frees")
def test_an_agent_may_not(
    sub: Any, unknown: KeptExecutions, home: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUB_RUN_ID", "run-1")
    refused = sub("intent", "release", HASH, "--reason", "please")
    assert refused.code == 2
    assert "is for a person to run" in refused.err
    assert unknown.claim(entry("one")) is not None


@requirement("kernel:person-frees")
def test_the_passphrase_is_asked_for(sub: Any, ledger: KeptExecutions, home: Places) -> None:
    ledger.claim(entry("one"))
    ledger.finish(HASH, ExecutionStatus.UNKNOWN)
    with typed("correct horse"):
        assert sub("passphrase", "set").code == 0
    words = ("intent", "release", HASH, "--reason", "r")
    with typed("guess"):
        assert "wrong passphrase" in sub(*words).err
    assert ledger.check(HASH) is not None
    with typed("correct horse"):
        assert sub(*words).code == 0
    assert ledger.check(HASH) is None


@contextmanager
def typed(passphrase: str) -> Iterator[None]:
    """Hands a passphrase over on a descriptor."""
    read, write = os.pipe()
    os.write(write, passphrase.encode() + b"\n")
    os.close(write)
    os.environ["SUB_PASSPHRASE_FD"] = str(read)
    try:
        yield
    finally:
        del os.environ["SUB_PASSPHRASE_FD"]


@requirement("kernel:person-frees")
def test_what_executes_or_is_done_is_refused(
    sub: Any, ledger: KeptExecutions, home: Places
) -> None:
    ledger.claim(entry("one"))
    refused = sub("intent", "release", HASH, "--reason", "r")
    assert refused.code == 2
    assert f"is executing: process {os.getpid()} on " in refused.err
    ledger.finish(HASH, ExecutionStatus.DONE)
    refused = sub("intent", "release", HASH, "--reason", "r")
    assert refused.code == 2
    assert "is done: it executed, claimed at 2026-11-16T00:00:00.000Z" in refused.err
    assert "new nonce" in refused.err
    assert ledger.claim(entry("one")) is not None
    assert not os.path.exists(journal_dir(home, "operator"))


@pytest.mark.parametrize("wrong", ["9f86d08", "9F86D081", "%", "z" * 64, "0" * 65, ""])
def test_what_is_not_a_hash(sub: Any, own_home: Path, wrong: str) -> None:
    refused = sub("intent", "release", wrong, "--reason", "r")
    assert refused.code == 2
    assert "is not the hash of an intent" in refused.err


def test_a_hash_that_was_never_claimed(sub: Any, ledger: KeptExecutions) -> None:
    refused = sub("intent", "release", HASH, "--reason", "r")
    assert refused.code == 2
    assert f"there is no execution of an intent `{HASH}`" in refused.err


def test_a_home_without_executions_gets_no_file(sub: Any, home: Places) -> None:
    refused = sub("intent", "release", HASH, "--reason", "r")
    assert refused.code == 2
    assert "there is no execution" in refused.err
    assert not os.path.exists(home.executions)


def test_executions_that_are_switched_off(sub: Any, home: Places) -> None:
    os.makedirs(home.home, 0o700)
    Path(home.settings).write_text('[kernel]\nexecutions = "off"\n')
    assert "no executions are kept" in sub("intent", "release", HASH, "--reason", "r").err


def test_a_reason_is_required(sub: Any, ledger: KeptExecutions) -> None:
    assert sub("intent", "release", HASH).code == 2
    assert "the reason is empty" in sub("intent", "release", HASH, "--reason", " ").err


def test_a_prefix_of_two_hashes(sub: Any, ledger: KeptExecutions) -> None:
    for last in ("0", "1"):
        ledger.claim(entry("one", intent_hash="a" * 63 + last))
    refused = sub("intent", "release", "a" * 8, "--reason", "r")
    assert refused.code == 2
    assert "matches more than one intent" in refused.err


def test_a_ledger_that_is_out_of_reach(sub: Any, home: Places) -> None:
    os.makedirs(home.state, 0o700)
    Path(home.executions).write_bytes(b"rubbish" * 2000)
    refused = sub("intent", "release", HASH, "--reason", "r")
    assert refused.code == 2
    assert "it is damaged" in refused.err


def test_a_setting_that_names_no_ledger(sub: Any, home: Places) -> None:
    os.makedirs(home.home, 0o700)
    Path(home.settings).write_text('[kernel]\nexecutions = "mysql://me:secret@host/db"\n')
    refused = sub("intent", "release", HASH, "--reason", "r")
    assert refused.code == 2
    assert "config.toml:2: `executions`: not a ledger that `sub` knows" in refused.err
    assert "secret" not in refused.err
