"""`sub secrets scan`: journals and the ledger against today's values and shapes."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.core.records.redaction.test_scanning import SECRET, SHIM, call, health, journal_of

from subluminal.config.places import places
from subluminal.ledger.store.database import open_writer

CONFIG = """
[[servers.github.secret_bindings]]
inject_as = "GITHUB_TOKEN"
secret_ref = "GH_FOR_SUB"
source = "env"
"""


@pytest.fixture
def recorded(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GH_FOR_SUB", SECRET)
    (own_home / "journal" / "run").mkdir(parents=True)
    (own_home / "config.toml").write_text(CONFIG)
    path = own_home / "journal" / "run" / f"{SHIM}.jsonl"
    path.write_bytes(journal_of(call(json.dumps({"k": SECRET})), health("fine")))
    return path


def test_a_hit_is_exit_1_and_shows_no_value(sub: Any, recorded: Path) -> None:
    ran = sub("secrets", "scan")
    assert ran.code == 1
    assert ran.out == f"found  journal/run/{SHIM}.jsonl byte 0 (preview): GH_FOR_SUB\n"
    assert ran.err.startswith("1 found. Use `--rewrite` to remove previews.")
    row = json.loads(sub("secrets", "scan", "--json").out)
    assert row == {
        "file": f"journal/run/{SHIM}.jsonl",
        "place": "byte 0",
        "where": "preview",
        "names": ["GH_FOR_SUB"],
        "removed": False,
    }


def test_rewrite_removes_it_and_then_nothing_is_found(sub: Any, recorded: Path) -> None:
    assert sub("secrets", "scan", "--rewrite").code == 0
    assert SECRET.encode() not in recorded.read_bytes()
    ran = sub("secrets", "scan")
    assert (ran.code, ran.out, ran.err) == (0, "", "No secrets found.\n")


def test_what_is_chained_stays_unless_the_chain_may_break(sub: Any, recorded: Path) -> None:
    recorded.write_bytes(journal_of(health(f"oh: {SECRET}")))
    ran = sub("secrets", "scan", "--rewrite")
    assert ran.code == 1
    assert "1 left in events" in ran.err
    assert sub("secrets", "scan", "--break-chain").code == 2
    assert sub("secrets", "scan", "--rewrite", "--break-chain").code == 0
    assert SECRET.encode() not in recorded.read_bytes()


def test_a_value_that_cannot_be_read_is_told(
    sub: Any, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GH_FOR_SUB")
    ran = sub("secrets", "scan")
    assert ran.code == 0
    assert "cannot search for `GH_FOR_SUB`" in ran.err


def test_previews_in_the_ledger_are_found_and_removed(sub: Any, recorded: Path) -> None:
    recorded.unlink()
    ledger = places({"SUB_HOME": str(recorded.parents[2])}).ledger
    connection = open_writer(ledger)
    connection.execute(
        "INSERT INTO shims VALUES (1, 's', 'r', 0, 1, x'00', NULL);"
        "INSERT INTO tool_calls (id, call_id, run_id, server_name, tool_name, args_hash,"
        " preview_truncated, created_at, shim) VALUES (1, 'c1', 'r', 's', 't', 'h', 0, 0, 1)"
    )
    connection.execute(
        "INSERT INTO previews VALUES (1, 'c1', ?, 'ok', NULL)", (json.dumps({"k": SECRET}),)
    )
    connection.execute("INSERT INTO search (rowid, args, result) VALUES (1, ?, 'ok')", (SECRET,))
    connection.execute(
        "INSERT INTO segments VALUES (1, 1, 1, 1, 1, x'00', x'00', 0, 0, ?)",
        (b'{"type":"x","error":"' + SECRET.encode() + b'"}',),
    )
    connection.close()
    ran = sub("secrets", "scan")
    assert ran.code == 1
    assert ran.out == (
        "found  ledger.db c1 (preview): GH_FOR_SUB\n"
        "found  ledger.db shim 1 event 1 (event): GH_FOR_SUB\n"
    )
    assert sub("secrets", "scan", "--rewrite").code == 1
    assert sub("secrets", "scan").out == "found  ledger.db shim 1 event 1 (event): GH_FOR_SUB\n"
    connection = open_writer(ledger)
    connection.execute("DELETE FROM segments")
    connection.pragma("secure_delete", True)
    connection.execute("VACUUM")
    connection.close()
    assert SECRET.encode() not in Path(ledger).read_bytes()
