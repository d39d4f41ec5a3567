"""`sub query intents` where a fleet keeps its executions in PostgreSQL."""

from pathlib import Path

import pytest
from tests.adapters.in_process.executions.conftest import one_server, server
from tests.adapters.in_process.executions.postgres_server import PostgresServer
from tests.cli.intents.conftest import Agent
from tests.requirements import requirement

from subluminal.adapters.in_process.executions import open_executions
from subluminal.kernel.executions import LedgerEntry

__all__ = ["one_server", "server"]


@pytest.fixture
def fleet(agent: Agent, server: PostgresServer, own_home: Path) -> Agent:
    own_home.mkdir(mode=0o700, exist_ok=True)
    (own_home / "config.toml").write_text(f'[kernel]\nexecutions = "{server.url}"\n')
    return agent


@requirement("kernel:query-intents", "kernel:found-half-way")
def test_statuses_come_from_the_fleet_s_ledger(
    fleet: Agent,
    server: PostgresServer,
) -> None:
    fleet.pay(5, "n-1")
    fleet.fail(6, "n-2")
    elsewhere = open_executions(server.url, fleet.home.places)
    assert elsewhere is not None
    entry = LedgerEntry("e" * 64, "2026-11-16T01:00:00.000Z", "run-of-another", "refund.pay")
    assert elsewhere.claim(entry) is None
    assert fleet.statuses() == [("n-1", "EXECUTE", "done"), ("n-2", "EXECUTE", "unknown")]
    (row,) = fleet.rows("--status", "claimed")
    assert (row["run_id"], row["call_id"]) == ("run-of-another", None)
    elsewhere.close()
    unknown = {row["intent_hash"] for row in fleet.rows("--status", "unknown")}
    assert "e" * 64 in unknown
    assert not Path(fleet.home.places.executions).exists()


@requirement("kernel:query-intents")
def test_a_fleet_s_ledger_that_is_gone_is_told(
    fleet: Agent,
    server: PostgresServer,
) -> None:
    fleet.pay(5, "n-1")
    fleet.close()
    fleet.ingest()
    server.stop()
    ran = fleet.sub("query", "intents")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert "hint: " in ran.err
