"""`sub tail` and `sub show` tell what a pack decided, at which level, and what became of it."""

import json
import re
from pathlib import Path

import pytest
from tests.adapters.policies import bundle, deny
from tests.cli.intents.conftest import Agent
from tests.cli.intents.refunds import KIND
from tests.requirements import requirement


def tail(agent: Agent, *words: str) -> list[str]:
    """The lines of `sub tail` without time and run."""
    ran = agent.sub("tail", "--no-follow", *words)
    assert ran.code == 0
    return [re.sub(r"^\S+  run-1  ", "", line) for line in ran.out.splitlines()]


def fields(text: str) -> dict[str, str]:
    """The fields of a detail, by their labels."""
    found = re.findall(r"^  ([a-z_]+) {2,}(.*)$", text, re.MULTILINE)
    return {label: " ".join(value.split()) for label, value in found}


def show(agent: Agent, call_id: str) -> dict[str, str]:
    agent.ingest()
    ran = agent.sub("show", call_id)
    assert ran.code == 0
    return fields(ran.out)


@requirement("kernel:screens")
def test_tail_has_the_level_the_decision_and_its_code_in_one_line(agent: Agent) -> None:
    agent.pay(5, "n-1")
    agent.pay(200, "n-2")
    agent.pay(60, "n-3")
    agent.close()
    calls = [line for line in tail(agent) if KIND in line]
    assert [calls[0], *calls[2:]] == [
        f'ALLOW      refunds/{KIND} UNTRUSTED  EXECUTE  {{"amount":5}}',
        f"BLOCK      refunds/{KIND} UNTRUSTED  REFUSE refund.too_much: That is more than 100.",
        f"HINT       refunds/{KIND} UNTRUSTED  DEFER: the pack refunds waits for the signal"
        " `refund.approved`",
    ]
    assert calls[1].startswith(f"OK         refunds/{KIND}  ")
    assert not [line for line in tail(agent) if "audit_record" in line]
    assert len(tail(agent, "kernel:REFUSE")) == 1
    assert len(tail(agent, "pack:refunds", "kernel!=EXECUTE")) == 2
    assert len(tail(agent, f"intent:{KIND}")) == 3
    assert tail(agent, "pack:other") == []
    hashes = {row["nonce"]: row["intent_hash"] for row in agent.rows()}
    assert tail(agent, f"intent_hash:{hashes['n-2']}") == [calls[2]]


@requirement("kernel:screens")
def test_tail_names_the_rule_where_a_policy_refuses_what_a_pack_would_execute(
    agent: Agent, own_home: Path
) -> None:
    own_home.mkdir(mode=0o700, exist_ok=True)
    rule = deny("refund.*", rule_id="no-refunds", message="The till is closed.")
    (own_home / "policy.yaml").write_text(json.dumps(bundle(rule)))
    refused = agent.pay(5, "n-1")
    agent.close()
    (line,) = [line for line in tail(agent) if KIND in line]
    assert line == (
        f"BLOCK      refunds/{KIND} UNTRUSTED  EXECUTE  no-refunds: The till is closed."
    )
    told = show(agent, refused.call_id)
    assert told["decision"].startswith("BLOCK rule no-refunds")
    assert told["kernel"] == f"EXECUTE refunds@2.0.0 {KIND}, guard judge"
    assert "execution" not in told


def test_tail_says_that_an_intent_was_only_compared(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUB_KERNEL_SHADOW", KIND)
    compared = agent.pay(200, "n-1", legacy=lambda: True)
    agent.close()
    line = next(line for line in tail(agent) if KIND in line)
    assert line.startswith(
        f"ALLOW      refunds/{KIND} UNTRUSTED  REFUSE refund.too_much (only compared)  "
    )
    told = show(agent, compared.call_id)
    assert told["divergence"] == "DECISION_KIND only compared: the agent's own code decided"


@requirement("kernel:screens")
def test_show_tells_all_of_a_decision(agent: Agent) -> None:
    refused = agent.pay(200, "n-1")
    waits = agent.pay(60, "n-2", principal="user")
    capped = agent.pay(20, "n-3")
    told = show(agent, refused.call_id)
    assert told["kernel"] == f"REFUSE refund.too_much, refunds@2.0.0 {KIND}, guard judge"
    assert told["basis"].endswith("auth:scope_sufficient, business:rule_violated")
    assert told["intent"] == f"{refused.record.intent_hash[:12]} UNTRUSTED, by llm, nonce n-1"
    assert told["audit"] == "1 record"
    assert "execution" not in told
    told = show(agent, waits.call_id)
    assert told["defer"] == "refund.approved for at most 15m00"
    assert told["intent"].endswith("TRUSTED, by user, nonce n-2")
    told = show(agent, capped.call_id)
    assert (told["kernel"], told["audit"]) == (
        f"EXECUTE refunds@2.0.0 {KIND}, guard judge",
        "2 records",
    )
    assert told["rewritten"] == "at most 10 before it was decided again"
    assert told["execution"] == "done it ran to its end; a retry is refused"
    told_json = json.loads(agent.sub("show", capped.call_id, "--json").out)
    assert told_json["execution"] == "done"
    assert told_json["call"]["kernel"]["nonce"] == "n-3"
    assert [event["type"] for event in told_json["events"]] == [
        *("tool_call_start", "tool_call_decision", "audit_record", "audit_record"),
        "tool_call_end",
    ]


@requirement("kernel:screens")
def test_show_says_how_to_free_what_failed_half_way(agent: Agent) -> None:
    agent.fail(5, "n-1")
    (row,) = agent.rows()
    told = show(agent, row["call_id"])
    assert told["execution"] == (
        "unknown it failed or died half way; a person must say what happened:"
        f" `sub intent release {row['intent_hash'][:12]} --reason …`"
    )


def test_show_says_that_a_record_is_missing_or_masked(agent: Agent, own_home: Path) -> None:
    own_home.mkdir(mode=0o700, exist_ok=True)
    (own_home / "config.toml").write_text("[record]\nmode = 'metadata'\n")
    masked = agent.pay(5, "n-1", payload={"key": "ghp_" + "a1B2" * 9})
    assert show(agent, masked.call_id)["audit"] == "1 record (1 redacted)"
    agent.close()
    (own_home / "config.toml").write_text("[record]\nmode = 'off'\n")
    silent = agent.pay(5, "n-2")
    told = show(agent, silent.call_id)
    assert told["audit"] == "- no audit record was kept"
    assert told["intent"] == f"{silent.record.intent_hash[:12]} UNTRUSTED"


@requirement("kernel:screens")
@pytest.mark.parametrize("columns", [80, 120])
def test_show_tells_the_decisions_of_a_run(
    agent: Agent, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("subluminal.cli.screens.tables.terminal_width", lambda: columns)
    agent.pay(5, "n-1")
    agent.pay(200, "n-2")
    agent.pay(60, "n-3")
    agent.close()
    agent.ingest()
    ran = agent.sub("show", "run-1", terminal=True)
    lines = [line for line in ran.out.splitlines() if f"refunds/{KIND}" in line]
    assert fields(ran.out)["intents"] == "3: 1 EXECUTE, 1 REFUSE, 1 DEFER"
    for line, said in zip(lines, ("EXECUTE", "REFUSE refund.too_", "DEFER"), strict=True):
        assert said in line
        assert ("UNTRUSTED" in line) == (columns == 120)
        assert len(line) <= columns
    listed = agent.sub("query", "intents", terminal=True).out.splitlines()
    assert len(listed) == 4
    assert max(map(len, listed)) <= columns
