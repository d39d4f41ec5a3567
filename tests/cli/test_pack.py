"""`sub pack …` and `sub ledger verify --audit-records`: packs, scenarios and audit records."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cli.conftest import Ran
from tests.kernel.making import FakeClock, Records, envelope
from tests.packs.installing import PACK, install, trust, write
from tests.packs.test_payments_pix import SCENARIOS, charge
from tests.requirements import requirement

from subluminal.contracts.limits import MAX_BUNDLE_BYTES
from subluminal.kernel import (
    AuditRecord,
    Confirmation,
    IntentEnvelope,
    Kill,
    LedgerEntry,
    MemoryExecutionLedger,
    RuntimeContext,
    adjudicate_and_audit,
    build_audit_record,
)
from subluminal.kernel.refusals import deadline_exceeded
from subluminal.packs.payments_pix import PACK as PIX

Sub = Callable[..., Ran]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory of its own; modules of packs in it are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("tiny_"):
            del sys.modules[name]


def rows(ran: Ran) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran.out.splitlines()]


def is_one_sentence(ran: Ran) -> bool:
    """Whether a command refused its input with sentences, not with a bug."""
    lines = ran.err.splitlines()
    return ran.code == 2 and all(line.startswith(("error: ", "hint: ")) for line in lines)


# list, show, check


@requirement("kernel:pack-commands")
def test_list_shows_every_installed_pack(sub: Sub) -> None:
    found = {row["name"]: row for row in rows(sub("pack", "list", "--json"))}
    assert {"payments_pix", "shell"} <= set(found)
    for row in found.values():
        assert list(row) == ["name", "version", "fingerprint", "intents"]
    heading, *lines = sub("pack", "list").out.splitlines()
    assert heading.split() == ["NAME", "VERSION", "FINGERPRINT", "INTENTS"]
    begins = heading.index("INTENTS")
    assert {"file.delete, file.write, terminal.run"} <= {line[begins:] for line in lines}


def test_list_says_which_pack_cannot_be_used(
    sub: Sub, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = trust(monkeypatch, here / "prefix")
    install(folder, "tiny-dist", {"tiny": "tiny_gone:PACK"})
    ran = sub("pack", "list", "--json")
    (row,) = [row for row in rows(ran) if row["name"] == "tiny"]
    assert row["fingerprint"] is None
    assert "there is no module" in row["problem"]
    assert "there is no module `tiny_gone`" in ran.err


def test_show_tells_what_a_pack_declares(sub: Sub) -> None:
    (row,) = rows(sub("pack", "show", "payments_pix", "--json"))
    assert row["taint"]["pix.charge.confirm"] == "TRUSTED"
    assert row["guards"]["auth"] == ["check_owner"]
    assert row["signals"] == ["payment.confirmed"]
    assert "check_owner" in sub("pack", "show", "payments_pix").out


def test_a_reference_is_found_in_the_working_directory(sub: Sub, here: Path) -> None:
    write(here / "tiny_here.py", PACK)
    (row,) = rows(sub("pack", "show", "tiny_here:PACK", "--json"))
    assert (row["name"], row["id"]) == ("tiny_here:PACK", "tiny")


@requirement("kernel:pack-commands")
@pytest.mark.parametrize("name", ["payments_pix", "shell"])
def test_our_packs_pass_all_checks(sub: Sub, name: str) -> None:
    ran = sub("pack", "check", name, "--json")
    assert ran.code == 0
    assert len(rows(ran)) == 9
    assert all(row["passed"] for row in rows(ran))


FAULTY = {
    "shape": PACK.replace('"REFUSE"', '"EXECUTE"'),
    "untrusted-mutating-needs-owner": PACK.replace("[refuse_all]", "[]"),
    "replay-determinism": PACK.replace(
        "return None",
        "from subluminal.kernel import Escalate; import uuid; "
        "return Escalate('human', uuid.uuid4().hex)",
    ),
    "basis-vocabulary-purity": PACK.replace(
        "return None",
        "from subluminal.kernel import Refuse, refuse; "
        "return Refuse(refuse('STATE', 'other.code', 'x'))",
    ),
}


@requirement("kernel:pack-commands")
@pytest.mark.parametrize("fault", FAULTY)
def test_check_finds_a_fault(sub: Sub, here: Path, fault: str) -> None:
    write(here / "tiny_faulty.py", FAULTY[fault])
    ran = sub("pack", "check", "tiny_faulty:PACK", "--json")
    assert ran.code == 1
    assert [row["check"] for row in rows(ran) if not row["passed"]] == [fault]
    assert "FAIL" in sub("pack", "check", "tiny_faulty:PACK").out


def test_a_pack_that_raises_while_it_is_checked_fails(sub: Sub, here: Path) -> None:
    code = PACK.replace(
        'basis_codes=["tiny.no"]', "basis_codes=['x'], rehydrate_state=lambda s: 1/0"
    )
    write(here / "tiny_raising.py", code)
    ran = sub("pack", "check", "tiny_raising:PACK", "--json")
    assert ran.code == 1
    assert "ZeroDivisionError" in rows(ran)[0]["detail"]


@pytest.mark.parametrize("verb", ["show", "check"])
@pytest.mark.parametrize(
    "name", ["nothing", "no.module:PACK", "sys:path", ":", "a:b:c", "", "os:x"]
)
def test_what_is_no_pack_gets_a_sentence(sub: Sub, verb: str, name: str) -> None:
    assert is_one_sentence(sub("pack", verb, name))


# test


@requirement("kernel:pack-scenarios")
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenarios_of_the_public_form_run(sub: Sub, path: Path) -> None:
    ran = sub("pack", "test", "payments_pix", str(path), "--json")
    assert ran.code == 0, ran.out
    (row,) = rows(ran)
    assert list(row) == ["file", "ok", "want", "got", "trace"]
    assert row["ok"] is True
    assert row["got"]["kind"] == row["want"]["kind"]
    assert row["trace"][-1]["outcome"] == "match"


def scenario(**changed: Any) -> dict[str, Any]:
    intent = {"kind": "pix.charge.create", "payload": {"amountCentavos": 5}}
    return {"intent": intent, "state": {}, "expected": {"kind": "DEFER"}} | changed


def test_a_mismatch_says_what_came_instead(sub: Sub, here: Path) -> None:
    wrong = {"kind": "REFUSE", "code": "pix.charge.not_found"}
    (here / "right.json").write_text(json.dumps(scenario()))
    (here / "wrong.json").write_text(json.dumps(scenario(expected=wrong)))
    ran = sub("pack", "test", "payments_pix", "right.json", "wrong.json")
    assert ran.code == 1
    assert ran.out == (
        "wrong.json: want REFUSE pix.charge.not_found, got DEFER by wait_for_payment\n"
        "2 scenarios, 1 failed\n"
    )


@requirement("kernel:pack-scenarios")
def test_another_code_is_a_mismatch(sub: Sub, here: Path) -> None:
    zero = {"kind": "pix.charge.create", "payload": {"amountCentavos": 0}}
    for code, exit_code in (("pix.charge.amount_invalid", 0), ("other", 1)):
        expected = {"kind": "REFUSE", "code": code}
        (here / "x.json").write_text(json.dumps(scenario(intent=zero, expected=expected)))
        assert sub("pack", "test", "payments_pix", "x.json").code == exit_code


def test_a_scenario_that_expects_nothing_is_only_told(sub: Sub, here: Path) -> None:
    (here / "x.json").write_text(json.dumps({"intent": scenario()["intent"]}))
    ran = sub("pack", "test", "payments_pix", "x.json", "--json")
    assert (ran.code, rows(ran)[0]["ok"], rows(ran)[0]["want"]) == (0, None, None)
    assert sub("pack", "test", "payments_pix", "x.json").out.startswith("x.json: DEFER\n")


def test_a_scenario_is_read_from_stdin(sub: Sub) -> None:
    ran = sub("pack", "test", "payments_pix", "-", stdin=json.dumps(scenario()).encode())
    assert ran.code == 0


DEEP = b'{"intent":' * 3000
RUBBISH = {
    "empty": b"",
    "blank": b" \n",
    "text": b"not json",
    "binary": bytes(range(256)),
    "not utf-8": b'{"intent": "\xff"}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "null": b"null",
    "a number": b"5",
    "an array": b"[]",
    "an empty object": b"{}",
    "cut": json.dumps(scenario()).encode()[:-5],
    "two objects": b"{}{}",
    "deep": DEEP,
    "NaN": b'{"intent": {"kind": "pix.charge.create", "payload": {"a": NaN}}}',
    "huge number": b'{"intent": {"kind": "pix.charge.create", "payload": {"a": 1e999}}}',
    "lone surrogate": b'{"intent": {"kind": "pix.charge.create", "payload": {"a": "\\ud800"}}}',
    "duplicate": b'{"intent": {}, "intent": {}}',
    "huge": b" " * (MAX_BUNDLE_BYTES + 2),
    **{
        name: json.dumps(value).encode()
        for name, value in {
            "unknown member": scenario(expcted={}),
            "unknown decision": scenario(expected={"kind": "ALLOW"}),
            "unknown member of expected": scenario(expected={"kind": "DEFER", "cde": "x"}),
            "no payload": scenario(intent={"kind": "pix.charge.create"}),
            "other intent": scenario(intent={"kind": "x", "payload": {}}),
            "no kind": scenario(intent={"payload": {}}),
            "intent is text": scenario(intent="x"),
            "bad taint": scenario(intent=scenario()["intent"] | {"taint": "HIGH"}),
            "bad principal": scenario(intent=scenario()["intent"] | {"actor": {"principal": "me"}}),
            "empty nonce": scenario(intent=scenario()["intent"] | {"nonce": ""}),
            "bad refs": scenario(intent=scenario()["intent"] | {"resourceRefs": [1]}),
            "version 1": scenario(intent=scenario()["intent"] | {"version": 1}),
        }.items()
    },
}


@requirement("kernel:pack-scenarios")
@pytest.mark.parametrize("kind", RUBBISH)
def test_a_bad_scenario_gets_a_sentence(sub: Sub, here: Path, kind: str) -> None:
    (here / "bad.json").write_bytes(RUBBISH[kind])
    (here / "good.json").write_text(json.dumps(scenario()))
    ran = sub("pack", "test", "payments_pix", "good.json", "bad.json")
    assert is_one_sentence(ran), ran
    assert "bad.json" in ran.err
    assert ran.out == ""


def test_every_bad_scenario_is_named(sub: Sub, here: Path) -> None:
    for name in ("a.json", "b.json"):
        (here / name).write_text("{}")
    ran = sub("pack", "test", "payments_pix", "a.json", "b.json")
    assert ran.err.count("error: ") == 2


@pytest.mark.parametrize("path", ["missing.json", ".", "a\0b"])
def test_a_file_that_cannot_be_read_gets_a_sentence(sub: Sub, path: str) -> None:
    assert is_one_sentence(sub("pack", "test", "payments_pix", path))


def test_a_state_that_the_pack_refuses_gets_a_sentence(sub: Sub, here: Path) -> None:
    code = PACK.replace(
        'basis_codes=["tiny.no"]', "basis_codes=['x'], rehydrate_state=lambda s: s['a']"
    )
    write(here / "tiny_state.py", code)
    (here / "x.json").write_text('{"intent": {"kind": "tiny.do", "payload": {}}}')
    ran = sub("pack", "test", "tiny_state:PACK", "x.json")
    assert is_one_sentence(ran)
    assert "KeyError" in ran.err


# replay


def audited(
    intent: IntentEnvelope, state: Any, *, kept: Any = None, **more: Any
) -> list[AuditRecord]:
    """The records that deciding about an intent leaves, with the state if `kept`."""
    sink = Records()
    adjudicate_and_audit(intent, state, PIX.policy, sink=sink, clock=FakeClock(), **more)
    metadata = None if kept is None else {"state": kept}
    return [msgspec.structs.replace(record, metadata=metadata) for record in sink.all]


def refund(centavos: int = 20_000) -> IntentEnvelope:
    payload = {"chargeId": "c", "refundCentavos": centavos, "reason": "x"}
    return envelope(payload, kind="pix.charge.refund")


def write_records(path: Path, records: list[AuditRecord]) -> str:
    path.write_bytes(b"\n".join(map(msgspec.json.encode, records)) + b"\n")
    return str(path)


def replayed(sub: Sub, here: Path, records: list[AuditRecord], *words: str) -> tuple[int, Any, Any]:
    file = write_records(here / "audit.jsonl", records)
    ran = sub("pack", "replay", "payments_pix", "--audit", file, "--json", *words)
    found = rows(ran)
    assert list(found[-1]) == ["summary"]
    return ran.code, found[:-1], found[-1]["summary"]


@requirement("kernel:pack-replay")
def test_what_is_decided_as_before_is_identical(sub: Sub, here: Path) -> None:
    state = charge(amount=500_000)
    records = [
        record
        for centavos in (20_000, 60_000, 200_000, 900_000)
        for record in audited(refund(centavos), state, kept=state)
    ]
    code, found, summary = replayed(sub, here, records, "--all")
    assert code == 0
    assert {row["verdict"] for row in found} == {"IDENTICAL"}
    assert list(found[0]) == ["intent_hash", "call_id", "verdict", "mismatch", "missing", "extra"]
    assert summary["identical"] == len(records) == 5
    assert replayed(sub, here, records)[1] == [], "without --all only differences are printed"


@requirement("kernel:pack-replay")
def test_another_state_changes_the_decision(sub: Sub, here: Path) -> None:
    records = audited(refund(), charge(), kept=charge("pending"))
    code, (row,), summary = replayed(sub, here, records)
    assert (code, row["verdict"], row["mismatch"]) == (1, "DECISION_CHANGED", "DECISION_KIND")
    assert summary["decision_changed"] == 1


def test_another_reason_is_told_and_is_no_failure(sub: Sub, here: Path) -> None:
    records = audited(refund(), charge("pending"), kept=charge("refunded"))
    code, (row,), _ = replayed(sub, here, records)
    assert (code, row["verdict"], row["mismatch"]) == (0, "BASIS_ONLY", "BASIS_DRIFT")
    assert (row["missing"], row["extra"]) == (
        ["state:transition_illegal"],
        ["state:terminal_state"],
    )


@requirement("kernel:pack-replay")
def test_without_a_state_nothing_can_be_told(sub: Sub, here: Path) -> None:
    records = audited(refund(), charge())
    code, (row,), _ = replayed(sub, here, records)
    assert (code, row["verdict"], row["mismatch"]) == (0, "UNDETERMINED", None)
    (here / "state.json").write_text(json.dumps(charge()))
    assert replayed(sub, here, records, "--state", "state.json")[2]["identical"] == 1
    (here / "state.json").write_text(json.dumps({"charges": {}}))
    assert replayed(sub, here, records, "--state", "state.json")[0] == 1


def test_the_state_on_record_comes_first(sub: Sub, here: Path) -> None:
    (here / "state.json").write_text(json.dumps({"charges": {}}))
    records = audited(refund(), charge(), kept=charge())
    assert replayed(sub, here, records, "--state", "state.json")[0] == 0


@requirement("kernel:pack-replay")
def test_ledger_switch_deadline_and_person_are_as_recorded(sub: Sub, here: Path) -> None:
    state, intent, large = charge(amount=500_000), refund(), refund(60_000)
    ledger = MemoryExecutionLedger()
    ledger.claim(LedgerEntry(intent.intent_hash, "x", "s-1", intent.kind, ""))
    killed = RuntimeContext(kill=Kill("stop", "2026-01-01T00:00:00Z"))
    late = build_audit_record(
        envelope=intent, decision=deadline_exceeded(5), at="x", duration_ms=1, metadata=None
    )
    records = [
        *audited(intent, state, kept=state, ledger=ledger),
        *audited(intent, state, context=killed),
        *audited(large, state, kept=state, confirmation=Confirmation(large.intent_hash, "x")),
        late,
    ]
    kinds = [record.decision["kind"] for record in records]
    assert kinds == ["REFUSE", "REFUSE", "EXECUTE", "REFUSE"]
    code, found, summary = replayed(sub, here, records)
    assert (code, found, summary["identical"]) == (0, [], 4)


def test_a_changed_or_masked_record_is_not_replayed(sub: Sub, here: Path) -> None:
    (record,) = audited(refund(), charge(), kept=charge())
    changed = msgspec.structs.replace(record, at="later")
    other = msgspec.structs.replace(record, envelope=record.envelope | {"nonce": "other"})
    masked = msgspec.structs.replace(record, metadata={"state": charge(), "redacted": True})
    code, found, _ = replayed(sub, here, [changed, other, masked])
    assert code == 0
    assert [(row["verdict"], row["mismatch"]) for row in found] == [
        ("UNDETERMINED", "AUDIT_HASH_TAMPERED"),
        ("UNDETERMINED", "INTENT_HASH_MISMATCH"),
        ("UNDETERMINED", None),
    ]


def test_records_of_other_packs_are_counted_only(sub: Sub, here: Path) -> None:
    records = audited(envelope(kind="order.submit"), {}, kept={})
    assert replayed(sub, here, records) == (
        0,
        [],
        {
            "records": 0,
            "identical": 0,
            "basis_only": 0,
            "decision_changed": 0,
            "undetermined": 0,
            "other_intents": 1,
        },
    )


def test_what_cannot_be_told_says_what_would_help(sub: Sub, here: Path) -> None:
    file = write_records(here / "audit.jsonl", audited(refund(), charge()))
    ran = sub("pack", "replay", "payments_pix", "--audit", file)
    assert "`--state FILE` stands in for it" in ran.out


def test_a_replay_reads_well(sub: Sub, here: Path) -> None:
    file = write_records(here / "audit.jsonl", audited(refund(), charge(), kept={"charges": {}}))
    ran = sub("pack", "replay", "payments_pix", "--audit", file)
    first, last = ran.out.splitlines()
    assert first.endswith("DECISION_CHANGED  DECISION_KIND  EXECUTE -> REFUSE pix.charge.not_found")
    assert last == ("1 record: 0 identical, 0 with other reasons, 1 changed, 0 undetermined")


# Files of audit records


def good_records() -> list[AuditRecord]:
    return audited(refund(), charge()) + audited(refund(60_000), charge(amount=90_000))


@requirement("kernel:audit-files")
@pytest.mark.parametrize("form", ["lines", "array"])
def test_records_are_verified(sub: Sub, here: Path, form: str) -> None:
    records = good_records()
    file = Path(write_records(here / "audit", records))
    if form == "array":
        file.write_bytes(b" " + msgspec.json.encode(records))
    ran = sub("ledger", "verify", "--audit-records", str(file), "--json")
    assert ran.code == 0
    assert rows(ran) == [
        {"intent_hash": record.intent_hash, "verified": True, "reason": None} for record in records
    ]
    assert sub("ledger", "verify", "--audit-records", str(file)).out == (
        "verified 2 audit records of 2\n"
    )


@requirement("kernel:audit-files")
def test_a_changed_record_is_found(sub: Sub, here: Path) -> None:
    first, second = good_records()
    records = [
        first,
        msgspec.structs.replace(second, at="later"),
        msgspec.structs.replace(first, envelope=first.envelope | {"payload": {}}),
        msgspec.structs.replace(first, audit_hash=None),
        msgspec.structs.replace(first, metadata={"redacted": True}),
    ]
    file = write_records(here / "audit.jsonl", records)
    ran = sub("ledger", "verify", "--audit-records", file, "--json")
    assert ran.code == 1
    assert [(row["verified"], row["reason"]) for row in rows(ran)] == [
        (True, None),
        (False, "tampered"),
        (False, "envelope_intent_mismatch"),
        (None, "missing_hash"),
        (None, "redacted"),
    ]
    ran = sub("ledger", "verify", "--audit-records", file)
    assert ran.code == 1
    assert "2 audit records of 5 were changed" in ran.err


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_all_versions_are_read(sub: Sub, version: int) -> None:
    record = msgspec.to_builtins(good_records()[0]) | {"version": version}
    del record["auditHash"]
    ran = sub(
        "ledger", "verify", "--audit-records", "-", "--json", stdin=json.dumps(record).encode()
    )
    assert (ran.code, rows(ran)[0]["reason"]) == (0, "missing_hash")


BAD_AUDITS = {
    "empty": b"",
    "blank": b"\n\n",
    "text": b"not json",
    "binary": bytes(range(256)),
    "null": b"null",
    "no record": b"{}",
    "an empty array": b"[]",
    "an array of rubbish": b"[1, 2]",
    "a cut array": b"[{}",
    "deep": b"[" * 5000,
    "deep line": b'{"a":' * 5000,
    "another version": msgspec.json.encode(msgspec.to_builtins(good_records()[0]) | {"version": 6}),
    "unknown member": msgspec.json.encode(msgspec.to_builtins(good_records()[0]) | {"x": 1}),
    "half a line": msgspec.json.encode(good_records()[0])[:-9],
    "good, then bad": msgspec.json.encode(good_records()[0]) + b"\n{}",
}


@requirement("kernel:audit-files")
@pytest.mark.parametrize("kind", BAD_AUDITS)
@pytest.mark.parametrize("command", ["verify", "replay"])
def test_a_bad_file_of_records_gets_a_sentence(
    sub: Sub, here: Path, command: str, kind: str
) -> None:
    (here / "bad").write_bytes(BAD_AUDITS[kind])
    words = {
        "verify": ["ledger", "verify", "--audit-records", "bad"],
        "replay": ["pack", "replay", "payments_pix", "--audit", "bad"],
    }[command]
    ran = sub(*words)
    assert is_one_sentence(ran), ran
    assert "bad" in ran.err


def test_the_line_of_a_bad_record_is_named(sub: Sub, here: Path) -> None:
    (here / "bad").write_bytes(BAD_AUDITS["good, then bad"])
    assert "error: bad:2: " in sub("ledger", "verify", "--audit-records", "bad").err


def test_a_decision_that_is_none_is_not_replayed(sub: Sub, here: Path) -> None:
    record = msgspec.structs.replace(good_records()[0], decision={"kind": "ALLOW"})
    file = write_records(here / "audit.jsonl", [record])
    ran = sub("pack", "replay", "payments_pix", "--audit", file)
    assert is_one_sentence(ran)
    assert "not a decision" in ran.err


@pytest.mark.parametrize("path", ["missing", "."])
def test_a_file_of_records_that_cannot_be_read_gets_a_sentence(sub: Sub, path: str) -> None:
    assert is_one_sentence(sub("ledger", "verify", "--audit-records", path))
    assert is_one_sentence(sub("pack", "replay", "shell", "--audit", path))


@pytest.mark.parametrize("data", [b"", b"{", b"NaN"])
def test_a_bad_state_gets_a_sentence(sub: Sub, here: Path, data: bytes) -> None:
    (here / "state.json").write_bytes(data)
    file = write_records(here / "audit.jsonl", good_records())
    ran = sub("pack", "replay", "payments_pix", "--audit", file, "--state", "state.json")
    assert is_one_sentence(ran)
    assert "state.json" in ran.err


def test_audit_records_are_verified_on_their_own(sub: Sub) -> None:
    assert is_one_sentence(sub("ledger", "verify", "--audit-records", "x", "--run", "y"))
