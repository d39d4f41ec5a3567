"""`sub query intents`: what packs decided, and how far each execution is (kernel.md 4)."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.intents.conftest import Agent
from tests.cli.intents.refunds import KIND
from tests.requirements import requirement

from subluminal.adapters.in_process.executions import open_executions
from subluminal.kernel import DecisionKind, ExecutionStatus
from subluminal.kernel.executions import LedgerEntry
from subluminal.ledger.filter.fields import EXECUTION_STATUSES, KERNEL_KINDS

COLUMNS = [
    *("ts", "run_id", "call_id", "pack", "intent_kind", "intent_hash", "nonce", "principal"),
    *("taint", "decision_kind", "refusal_code", "status"),
]


def kept(agent: Agent) -> Any:
    made = open_executions("sqlite", agent.home.places)
    assert made is not None
    return made


def test_the_words_of_the_filter_are_the_kernel_s() -> None:
    assert tuple(kind.value for kind in DecisionKind) == KERNEL_KINDS
    assert tuple(status.value for status in ExecutionStatus) == EXECUTION_STATUSES


@requirement("kernel:query-intents")
def test_every_intent_with_the_status_of_its_execution(agent: Agent) -> None:
    paid = agent.pay(5, "n-1")
    agent.pay(200, "n-2")
    agent.fail(6, "n-3")
    capped = agent.pay(20, "n-4", principal="user")
    agent.pay(5, "n-1")
    rows = agent.rows()
    assert [list(row) for row in rows] == [COLUMNS] * 5
    assert rows[0] == {
        "ts": rows[0]["ts"],
        "run_id": "run-1",
        "call_id": paid.call_id,
        "pack": "refunds",
        "intent_kind": KIND,
        "intent_hash": paid.record.intent_hash,
        "nonce": "n-1",
        "principal": "llm",
        "taint": "UNTRUSTED",
        "decision_kind": "EXECUTE",
        "refusal_code": None,
        "status": "done",
    }
    assert [(row["nonce"], row["refusal_code"], row["status"]) for row in rows] == [
        ("n-1", None, "done"),
        ("n-2", "refund.too_much", None),
        ("n-3", None, "unknown"),
        ("n-4", None, "done"),
        ("n-1", "ledger_replay_suppressed", None),
    ]
    assert (rows[3]["intent_hash"], rows[3]["taint"]) == (capped.record.intent_hash, "TRUSTED")
    assert [row["nonce"] for row in agent.rows("--order", "newest", "--limit", "2")] == [
        "n-1",
        "n-4",
    ]


@requirement("kernel:query-intents")
def test_filters(agent: Agent) -> None:
    agent.pay(5, "n-1")
    agent.pay(200, "n-2")
    agent.fail(6, "n-3")
    agent.open("run-2")
    agent.pay(60, "n-4")

    def nonces(*words: str) -> list[Any]:
        return [row["nonce"] for row in agent.rows(*words)]

    assert nonces("--run", "run-2") == ["n-4"]
    assert nonces("--status", "done") == ["n-1"]
    assert nonces("--status", "UNKNOWN") == ["n-3"]
    assert nonces("--status", "done,unknown") == ["n-1", "n-3"]
    assert nonces("--status", "done,unknown", "--limit", "1") == ["n-3"]
    assert nonces("--", "-status:done") == ["n-3"]
    assert nonces("--status", "claimed") == []
    assert nonces("kernel:REFUSE,DEFER") == ["n-2", "n-4"]
    assert nonces("refusal:refund.*") == ["n-2"]
    assert nonces("nonce:n-3", "--pack", "ref*") == ["n-3"]
    assert nonces("guard:judge", "principal:llm", "taint:UNTRUSTED", "kernel!=EXECUTE") == [
        "n-2",
        "n-4",
    ]
    assert nonces("decision:BLOCK") == ["n-2"]
    assert nonces("--status", "unknown", "--run", "run-2") == []
    assert nonces("--status", "unknown", "--run", "run-1", "pack:refunds") == ["n-3"]
    assert nonces("--pack", "other") == []
    assert nonces("--since", "1h") == ["n-1", "n-2", "n-3", "n-4"]
    assert nonces("--until", "1h") == []
    digest = agent.rows("nonce:n-3")[0]["intent_hash"]
    assert nonces(f"intent_hash:{digest[:12]}*") == ["n-3"]
    # Calls, too, know what a pack said about them.
    ran = agent.sub("query", "calls", "pack:refunds", "kernel!=EXECUTE", "--json")
    told = [json.loads(line)["kernel"]["nonce"] for line in ran.out.splitlines()]
    assert told == ["n-2", "n-4"]
    wrong = agent.sub("query", "intents", "--status", "OK")
    assert wrong.code == 2
    assert "unknown status `OK`" in wrong.err


@requirement("kernel:found-half-way")
def test_an_execution_that_never_reached_the_ledger_is_found(agent: Agent) -> None:
    """Killed between claim and journal: only the execution ledger knows of it."""
    agent.pay(5, "n-1")
    died = (
        "import os, sys\n"
        "from subluminal.adapters.in_process.executions import open_executions\n"
        "from subluminal.config.places import places\n"
        "from subluminal.kernel.executions import LedgerEntry\n"
        "ledger = open_executions('sqlite', places(os.environ))\n"
        "entry = LedgerEntry('e' * 64, '2026-11-16T01:00:00.000Z', 'run-9', 'refund.pay')\n"
        "assert ledger.claim(entry) is None\n"
        "os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", died]).returncode == -signal.SIGKILL
    lost = dict.fromkeys(COLUMNS) | {
        "ts": "2026-11-16T01:00:00.000Z",
        "run_id": "run-9",
        "intent_kind": KIND,
        "intent_hash": "e" * 64,
        "status": "unknown",
    }
    assert agent.rows("--status", "unknown") == [lost]
    assert agent.rows("--status", "unknown", "--run", "run-9", "intent:refund.*") == [lost]
    assert agent.rows("--status", "unknown", "--run", "run-1") == []
    assert agent.rows("--status", "unknown", "pack:refunds") == []
    assert agent.statuses("--status", "unknown,done") == [
        (None, None, "unknown"),
        ("n-1", "EXECUTE", "done"),
    ]
    ran = agent.sub("query", "intents", "--status", "unknown")
    assert "eeeeeeeeeeee" in ran.out


@requirement("kernel:found-half-way")
def test_an_execution_that_was_killed_in_its_handler_is_found(agent: Agent) -> None:
    died = (
        "import os, sys\n"
        "from subluminal.sdk import open_kernel\n"
        "from tests.cli.intents.refunds import KIND, refunds\n"
        "kernel = open_kernel(refunds(), run_id='run-7')\n"
        "kernel.execute(KIND, {'amount': 7}, state={}, nonce='n-7',"
        " handler=lambda envelope: os.kill(os.getpid(), 9))\n"
    )
    root = str(Path(__file__).parents[3])
    env = {**os.environ, "PYTHONPATH": root}
    assert subprocess.run([sys.executable, "-c", died], env=env).returncode == -signal.SIGKILL
    (row,) = agent.rows("--status", "unknown")
    assert (row["run_id"], row["nonce"], row["pack"]) == ("run-7", "n-7", "refunds")


def test_an_execution_under_way_is_claimed(agent: Agent) -> None:
    seen: list[Any] = []
    agent.pay(5, "n-1", handler=lambda envelope: seen.extend(agent.statuses()))
    assert seen == [("n-1", "EXECUTE", "claimed")]
    assert agent.statuses("--status", "done") == [("n-1", "EXECUTE", "done")]


@requirement("kernel:query-intents")
def test_only_the_call_that_claimed_has_a_status(agent: Agent) -> None:
    """Released by a person and run again; only decided, before and after."""
    door = agent.open()
    given: Any = {"state": {"open": True}, "nonce": "n-1"}
    door.decide(KIND, {"amount": 5}, **given)
    agent.fail(5, "n-1")
    (row,) = agent.rows("--status", "unknown")
    agent.release(row["intent_hash"])
    assert [status for *_, status in agent.statuses()] == [None, None]
    agent.pay(5, "n-1")
    door.decide(KIND, {"amount": 5}, **given)
    assert [status for *_, status in agent.statuses()] == [None, None, "done", None]
    assert [status for *_, status in agent.statuses("--limit", "1")] == [None]
    assert [status for *_, status in agent.statuses("--status", "done")] == ["done"]


def test_an_intent_that_is_only_compared_has_no_status(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUB_KERNEL_SHADOW", KIND)
    agent.pay(5, "n-1", legacy=lambda: True)
    monkeypatch.delenv("SUB_KERNEL_SHADOW")
    agent.open()
    agent.pay(5, "n-1")
    assert agent.statuses() == [("n-1", "EXECUTE", None), ("n-1", "EXECUTE", "done")]


def test_many_executions_are_asked_for_in_parts(agent: Agent) -> None:
    for number in range(60):
        agent.pay(5, f"n-{number}")
        if number % 2:
            agent.fail(6, f"f-{number}")
    told = agent.statuses("--limit", "90")
    assert (len(told), {status for *_, status in told}) == (90, {"done", "unknown"})
    assert len(agent.rows("--status", "unknown")) == 30
    assert len(agent.rows("--status", "unknown", "pack:refunds", "--limit", "7")) == 7
    assert [row["nonce"] for row in agent.rows("--status", "done", "--limit", "3")] == [
        "n-57",
        "n-58",
        "n-59",
    ]


@requirement("kernel:query-intents")
@pytest.mark.parametrize("damage", ["rubbish", "pipe", "directory"])
def test_executions_out_of_reach_are_told(agent: Agent, damage: str) -> None:
    """Never a silent null."""
    paid = agent.pay(5, "n-1")
    agent.close()
    agent.ingest()
    path = Path(agent.home.places.executions)
    path.unlink()
    if damage == "rubbish":
        path.write_bytes(b"rubbish" * 4096)
    elif damage == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    for words in (("--json",), ("--status", "unknown")):
        ran = agent.sub("query", "intents", *words)
        assert (ran.code, ran.out) == (2, "")
        assert str(path) in ran.err
    shown = agent.sub("show", paid.call_id)
    assert shown.code == 0
    assert "execution   not known" in shown.out
    assert str(path) in shown.out
    assert (
        str(path) in json.loads(agent.sub("show", paid.call_id, "--json").out)["execution_problem"]
    )


def test_without_an_execution_ledger(agent: Agent, own_home: Path) -> None:
    own_home.mkdir(mode=0o700, exist_ok=True)
    (own_home / "config.toml").write_text('[kernel]\nexecutions = "off"\n')
    agent.pay(5, "n-1")
    assert agent.statuses() == [("n-1", "EXECUTE", None)]
    ran = agent.sub("query", "intents", "--status", "done")
    assert ran.code == 2
    assert "`[kernel] executions` is `off`" in ran.err


def test_a_question_creates_no_execution_ledger(agent: Agent, own_home: Path) -> None:
    assert agent.sub("query", "intents").err.startswith("No intents recorded yet.")
    assert agent.sub("query", "intents", "--status", "unknown").err == "No intents match.\n"
    assert not Path(agent.home.places.executions).exists()


def test_an_execution_of_a_strange_time_and_hash(agent: Agent) -> None:
    """The execution ledger of a fleet is written by other machines."""
    executions = kept(agent)
    strange = 'x"*?[\\ ,' * 3
    executions.claim(LedgerEntry(strange, "yesterday", "run\x1b[31m", "k" * 300))
    executions.finish(strange, ExecutionStatus.UNKNOWN)
    (row,) = agent.rows("--status", "unknown")
    assert (row["ts"], row["intent_hash"]) == (None, strange)
    ran = agent.sub("query", "intents", "--status", "unknown", terminal=True)
    assert ran.code == 0
    assert "\x1b[31m" not in ran.out
    executions.close()
