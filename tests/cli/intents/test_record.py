"""What a run of the in-process door leaves on record, and every command that reads it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.policies import bundle
from tests.cli.intents.conftest import Agent
from tests.cli.intents.refunds import KIND
from tests.requirements import requirement

from subluminal.kernel import decode_audit_record, verify_audit_record
from subluminal.kernel.plain import sha256_canonical

PACK = "tests.cli.intents.refunds:PACK"
TOKEN = "ghp_" + "a1B2" * 9
STATE = {"open": True}


def settings(home: Path, mode: str, more: str = "") -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text(f"[record]\nmode = '{mode}'\n{more}")


def audits(agent: Agent) -> list[dict[str, Any]]:
    """The audit records in the journals."""
    events = [json.loads(line) for line in agent.home.lines()]
    return [event["audit"] for event in events if event["type"] == "audit_record"]


@requirement("kernel:records-masked")
def test_mode_off_keeps_the_decision_and_no_audit_record(agent: Agent, own_home: Path) -> None:
    settings(own_home, "off")
    agent.pay(5, "n-1")
    assert audits(agent) == []
    (row,) = agent.rows()
    assert (row["decision_kind"], row["status"], row["nonce"]) == ("EXECUTE", "done", None)


@requirement("kernel:records-masked")
def test_mode_metadata_keeps_small_records_and_the_hash_of_the_state(
    agent: Agent, own_home: Path
) -> None:
    settings(own_home, "metadata", "[limits]\nmax_preview_bytes = 2048\n")
    done = agent.pay(5, "n-1")
    agent.pay(5, "n-2", payload={"note": "x" * 2_048})
    (audit,) = audits(agent)
    assert audit["metadata"] == {"state_hash": sha256_canonical(STATE)}
    assert audit["intentHash"] == done.record.intent_hash
    assert verify_audit_record(decode_audit_record(json.dumps(audit).encode())).verified is True
    assert [row["nonce"] for row in agent.rows()] == ["n-1", None]


@requirement("kernel:records-masked")
def test_mode_full_keeps_the_state(agent: Agent, own_home: Path) -> None:
    settings(own_home, "full")
    agent.pay(5, "n-1", payload={"note": "x" * 10_000})
    (audit,) = audits(agent)
    assert audit["metadata"] == {"state_hash": sha256_canonical(STATE), "state": STATE}
    assert audit["envelope"]["payload"]["note"] == "x" * 10_000


@requirement("kernel:records-masked")
@pytest.mark.parametrize("mode", ["metadata", "full"])
def test_a_masked_record_says_so_and_cannot_be_proven(
    agent: Agent, own_home: Path, mode: str, tmp_path: Path
) -> None:
    """kernel.md 2: metadata.redacted, and verify says null `redacted`."""
    settings(own_home, mode)
    agent.pay(5, "n-1", payload={"key": TOKEN})
    agent.pay(5, f"n-{TOKEN}", state={"key": TOKEN})
    agent.pay(200, "n-3", payload={"note": TOKEN})
    agent.pay(5, "n-4")
    assert [audit["metadata"].get("redacted") for audit in audits(agent)] == [
        *(True, True, True, None)
    ]
    agent.close()
    agent.ingest()
    exported = tmp_path / "audits.jsonl"
    exported.write_text("".join(json.dumps(audit) + "\n" for audit in audits(agent)))
    ran = agent.sub("ledger", "verify", "--audit-records", str(exported), "--json")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [(row.get("verified"), row.get("reason")) for row in rows[:4]] == [
        *[(None, "redacted")] * 3,
        (True, None),
    ]
    assert ran.code == 0
    for path in own_home.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path


@requirement("kernel:pack-replay")
def test_a_pack_is_replayed_from_the_ledger(agent: Agent, own_home: Path) -> None:
    settings(own_home, "full")
    agent.pay(5, "n-1")
    agent.pay(20, "n-2")
    refused = agent.pay(200, "n-3")
    agent.ingest()  # runs are in the order of ingest
    agent.open("run-2")
    agent.pay(5, "n-4", payload={"key": TOKEN})
    agent.close()
    agent.ingest()

    def replayed(*words: str) -> tuple[int, list[dict[str, Any]], dict[str, int]]:
        ran = agent.sub("pack", "replay", PACK, "--json", *words)
        *rows, last = [json.loads(line) for line in ran.out.splitlines()]
        return ran.code, rows, last["summary"]

    code, rows, summary = replayed("--all")
    assert (code, summary["records"], summary["identical"]) == (0, 5, 4)
    assert [row["verdict"] for row in rows] == [*["IDENTICAL"] * 4, "UNDETERMINED"]
    assert rows[3]["call_id"] == refused.call_id
    assert [row["verdict"] for row in replayed()[1]] == ["UNDETERMINED"]
    assert replayed("--run", "run-1")[2]["records"] == 4
    assert replayed("--run", "run-1", "un-2", "--since", "1h")[2]["records"] == 5
    assert replayed("--since", "2099-01-01")[2]["records"] == 0
    other = agent.sub("pack", "replay", "shell", "--json")
    assert json.loads(other.out)["summary"]["other_intents"] == 5
    both = agent.sub("pack", "replay", PACK, "--audit", "x", "--since", "1h")
    assert (both.code, both.out) == (2, "")
    unknown = agent.sub("pack", "replay", PACK, "--run", "nobody")
    assert (unknown.code, "there is no call or run `nobody`" in unknown.err) == (2, True)


def test_a_record_that_no_kernel_can_read_is_undetermined(agent: Agent) -> None:
    agent.pay(5, "n-1")
    agent.close()
    shim = agent.home.producer("run-2", "shim-2")
    call_id = shim.call()
    for record in ({"version": 9}, "x", {"version": 5, "intentHash": "e" * 64}):
        shim.audit(call_id, record)
    agent.ingest()
    ran = agent.sub("pack", "replay", PACK, "--json", "--run", "run-2")
    *rows, last = [json.loads(line) for line in ran.out.splitlines()]
    assert [(row["call_id"], row["verdict"]) for row in rows] == [(call_id, "UNDETERMINED")] * 3
    assert last["summary"]["undetermined"] == 3


def test_a_replay_of_a_home_without_records(agent: Agent) -> None:
    ran = agent.sub("pack", "replay", PACK)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("0 records: ")
    assert "`sub policy replay`" in ran.out


def test_every_other_command_reads_such_a_run(agent: Agent, own_home: Path, tmp_path: Path) -> None:
    settings(own_home, "full")
    for amount, nonce in ((5, "n-1"), (200, "n-2"), (60, "n-3"), (20, "n-4"), (5, "n-1")):
        agent.pay(amount, nonce)
    agent.fail(6, "n-5")
    agent.close()
    agent.ingest()
    assert agent.home.verify().findings == []
    (run,) = [json.loads(line) for line in agent.sub("query", "runs", "--json").out.splitlines()]
    assert (run["calls"], run["decisions"], run["errors"]) == (
        6,
        {"ALLOW": 3, "BLOCK": 2, "REJECT_WITH_HINT": 1},
        1,
    )
    assert run["doors"] == ["in_process"]
    (tool,) = [json.loads(line) for line in agent.sub("query", "tools", "--json").out.splitlines()]
    assert (tool["tool_name"], tool["calls"], tool["refused"]) == (KIND, 6, 3)
    art = tmp_path / "artifact"
    assert agent.sub("export", "run", "run-1", "--format", "bundle", "-o", str(art)).code == 0
    assert agent.sub("ledger", "verify", "--artifact", str(art)).code == 0
    exported = (art / "events.jsonl").read_text()
    assert exported.count('{"type":"audit_record"') == 7
    assert "refund.too_much" in (art / "summary.md").read_text()
    assert agent.sub("export", "diff", str(art), str(art)).code == 0
    for form in ("jsonl", "junit", "sarif", "summary"):
        assert agent.sub("export", "run", "run-1", "--format", form).code == 0
    policy = tmp_path / "policy.yaml"
    policy.write_text(json.dumps(bundle()))
    assert agent.sub("policy", "replay", "--policy", str(policy), "--json").code == 0
