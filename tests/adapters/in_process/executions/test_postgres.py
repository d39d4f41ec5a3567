"""PostgreSQL as the ledger of a fleet: sessions that are lost, a server that is out of reach."""

import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from urllib.parse import quote

import psycopg
import pytest
from tests.adapters.in_process.executions.claimants import Claimant, entry, hash_of
from tests.adapters.in_process.executions.cutting_proxy import CuttingProxy
from tests.adapters.in_process.executions.postgres_server import PASSWORD, PostgresServer
from tests.processes import wait_until
from tests.requirements import requirement

from subluminal.adapters.in_process.executions import (
    ExecutionsUnavailable,
    KeptExecutions,
    open_executions,
    postgres_server,
)
from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.kernel.executions import ExecutionStatus

CLAIMED, DONE, UNKNOWN = ExecutionStatus.CLAIMED, ExecutionStatus.DONE, ExecutionStatus.UNKNOWN
Opener = Callable[[str], KeptExecutions]


@pytest.fixture
def ledger(server: PostgresServer, opened: Opener) -> KeptExecutions:
    return opened(server.url)


@pytest.fixture
def proxy(server: PostgresServer) -> Iterator[CuttingProxy]:
    made = CuttingProxy(server)
    yield made
    made.close()


def status(ledger: KeptExecutions, name: str) -> ExecutionStatus | None:
    found = ledger.check(hash_of(name))
    return found and found.status


@requirement("kernel:ledger-out-of-reach")
def test_a_server_that_stops_during_a_claim(
    ledger: KeptExecutions, server: PostgresServer, opened: Opener
) -> None:
    """The claim waits for another one that is not committed, when the server stops."""
    rival = psycopg.connect(server.url)
    rival.execute(
        "INSERT INTO subluminal_executions VALUES (%s, '', '', '', '', 'claimed', '', '', 1, 1, 1)",
        (hash_of("one"),),
    )
    told: list[object] = []

    def claim() -> None:
        try:
            told.append(ledger.claim(entry("one")))
        except ExecutionsUnavailable as error:
            told.append(str(error))

    thread = threading.Thread(target=claim)
    thread.start()
    wait_until(lambda: _waits_for_a_lock(server), "the claim to wait")
    server.stop()
    thread.join()
    rival.close()
    (said,) = told
    assert "is out of reach" in str(said)
    with pytest.raises(ExecutionsUnavailable):
        ledger.claim(entry("one"))
    server.start()
    assert opened(server.url).check(hash_of("one")) is None
    assert ledger.claim(entry("one")) is None


def _waits_for_a_lock(server: PostgresServer) -> bool:
    query = (
        "SELECT 1 FROM pg_stat_activity"
        " WHERE application_name = 'subluminal' AND wait_event_type = 'Lock'"
    )
    with psycopg.connect(server.url) as connection:
        return connection.execute(query).fetchone() is not None


@requirement("kernel:ledger-out-of-reach")
def test_a_server_that_stops_before_the_end_of_an_execution(
    ledger: KeptExecutions, server: PostgresServer, opened: Opener
) -> None:
    assert ledger.claim(entry("one")) is None
    server.stop()
    with pytest.raises(ExecutionsUnavailable):
        ledger.finish(hash_of("one"), DONE)
    server.start()
    assert status(opened(server.url), "one") is UNKNOWN
    ledger.finish(hash_of("one"), DONE)
    assert status(opened(server.url), "one") is DONE


def test_a_restart_between_two_calls_is_not_noticed(
    ledger: KeptExecutions, server: PostgresServer
) -> None:
    assert ledger.claim(entry("one")) is None
    for act in (
        lambda: ledger.check(hash_of("one")),
        lambda: ledger.claim(entry("two")),
        lambda: ledger.finish(hash_of("one"), DONE),
        lambda: ledger.release(hash_of("two")),
    ):
        server.stop(signal.SIGINT)
        server.start()
        act()
    assert status(ledger, "one") is DONE
    assert status(ledger, "two") is None


@requirement("kernel:one-execution")
def test_a_claim_whose_answer_is_lost_was_not_executed(
    proxy: CuttingProxy, server: PostgresServer, opened: Opener
) -> None:
    """The row is there, but the claimant does not know: its next claim starts from nothing."""
    ledger, other = opened(proxy.url), opened(server.url)
    proxy.cut_answers(b"INSERT INTO", connections=2)
    with pytest.raises(ExecutionsUnavailable):
        ledger.claim(entry("one"))
    wait_until(lambda: status(other, "one") is UNKNOWN, "the lost claim")
    assert ledger.claim(entry("one")) is None
    assert status(other, "one") is CLAIMED


def test_an_end_whose_answer_is_lost_is_told_again(
    proxy: CuttingProxy, server: PostgresServer, opened: Opener
) -> None:
    ledger = opened(proxy.url)
    ledger.claim(entry("one"))
    proxy.cut_answers(b"UPDATE", connections=1)
    ledger.finish(hash_of("one"), DONE)
    assert status(opened(server.url), "one") is DONE


def test_a_lost_session_does_not_free_the_claim_of_another_thread(
    proxy: CuttingProxy, opened: Opener
) -> None:
    """One thread has the claim; another one loses the session while it asks for the same."""
    ledger = opened(proxy.url)
    assert ledger.claim(entry("one")) is None
    proxy.cut_answers(b"INSERT INTO", connections=1)
    held = ledger.claim(entry("one"))
    assert held is not None
    ledger.finish(hash_of("one"), DONE)


@requirement("kernel:unknown-after-death")
def test_a_claimant_without_its_session_is_unknown_to_others(
    ledger: KeptExecutions, server: PostgresServer, opened: Opener
) -> None:
    other = opened(server.url)
    ledger.claim(entry("one"))
    assert status(other, "one") is CLAIMED
    server.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'subluminal'"
    )
    wait_until(lambda: status(other, "one") is UNKNOWN, "the end of the session")
    kept = other.free(hash_of("one"))
    assert kept is not None
    assert other.claim(entry("one", session_id="other")) is None
    with pytest.raises(SubluminalError, match="was not claimed by this process"):
        ledger.finish(hash_of("one"), DONE)
    assert status(ledger, "one") is CLAIMED


@requirement("kernel:ledger-out-of-reach")
def test_a_server_that_says_nothing(
    ledger: KeptExecutions, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_server, "_ANSWER_S", 0.5)
    monkeypatch.setattr(postgres_server, "_CONNECT_S", 2)
    (backend,) = server.backends()
    server.pause(backend)
    try:
        with pytest.raises(ExecutionsUnavailable):
            ledger.claim(entry("one"))
        with pytest.raises(ExecutionsUnavailable, match="timeout"):
            ledger.claim(entry("one"))
    finally:
        server.resume(backend)
    wait_until(lambda: status(ledger, "one") in (None, UNKNOWN), "an answer")


@requirement("kernel:ledger-out-of-reach")
def test_a_table_that_is_locked(
    ledger: KeptExecutions, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(server.url) as rival:
        rival.execute("LOCK TABLE subluminal_executions")
        with pytest.raises(ExecutionsUnavailable, match="lock timeout"):
            ledger.claim(entry("one"))
    assert ledger.claim(entry("one")) is None


@requirement("kernel:ledger-out-of-reach")
def test_a_table_that_was_dropped(ledger: KeptExecutions, server: PostgresServer) -> None:
    """It is not made again: the past would be forgotten, and a retry would run again."""
    server.run("DROP TABLE subluminal_executions")
    for _ in range(2):
        with pytest.raises(ExecutionsUnavailable, match="does not exist"):
            ledger.claim(entry("one"))
        ledger.close()


@requirement("kernel:ledger-out-of-reach")
def test_a_server_that_is_not_there(home: Places) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ExecutionsUnavailable, match="refused"):
        open_executions(f"postgresql://me@127.0.0.1:{port}/db", home)


@requirement("kernel:no-password")
def test_no_message_contains_the_password(
    server: PostgresServer, home: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "Tr0ub4dor&3/x"
    spelled = quote(secret, safe="")
    urls = [
        server.tcp_url(spelled),
        f"postgresql://sub:{spelled}@127.0.0.1:1/{spelled}",
        f"postgresql://sub@127.0.0.1:{server.port}/postgres?password={spelled}",
        f"postgresql://sub:{secret}@127.0.0.1:{server.port}/postgres",
        f"postgresql://sub:{spelled}@127.0.0.1:not-a-port/postgres",
        f"postgresql://sub:{spelled}%zz@127.0.0.1/postgres",
        f"postgresql://sub:p@{secret}@127.0.0.1/postgres",
        "postgresql://sub:p@Tr0ub4dor@127.0.0.1/postgres",
    ]
    for url in urls:
        with pytest.raises(SubluminalError) as refused:
            open_executions(url, home)
        said = f"{refused.value} {refused.value.hint} {refused.getrepr(chain=True, style='native')}"
        assert secret not in said
        assert spelled not in said
        assert "Tr0ub4dor" not in said


def test_the_password_may_come_from_libpq(
    server: PostgresServer, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"postgresql://sub@127.0.0.1:{server.port}/postgres"
    with pytest.raises(ExecutionsUnavailable, match="password"):
        opened(url)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert opened(url).claim(entry("one")) is None
    monkeypatch.delenv("PGPASSWORD")
    assert opened(server.tcp_url(quote(PASSWORD, safe=""))).check(hash_of("one")) is not None


def test_without_psycopg_a_sentence_says_what_to_install(
    home: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.sys.modules, "subluminal.adapters.in_process.executions.postgres", None)
    with pytest.raises(ExecutionsUnavailable, match="need psycopg") as refused:
        open_executions("postgresql://host/db", home)
    assert refused.value.hint == "run `pip install 'subluminal[postgres]'`"


@requirement("kernel:durable-claim")
def test_a_claim_is_on_the_servers_disk_when_it_returns(
    server: PostgresServer, opened: Opener
) -> None:
    server.run("ALTER ROLE sub SET synchronous_commit = off")
    try:
        ledger = opened(server.url)
        assert ledger._run("SHOW synchronous_commit", ()).fetchone() == ("on",)
    finally:
        server.run("ALTER ROLE sub RESET synchronous_commit")


def test_a_server_that_ends_idle_sessions_keeps_ours(
    server: PostgresServer, opened: Opener
) -> None:
    server.run("ALTER ROLE sub SET idle_session_timeout = '1s'")
    try:
        ledger, other = opened(server.url), opened(server.url)
        ledger.claim(entry("one"))
        with closing(psycopg.connect(server.url)) as idle:
            wait_until(lambda: select.select([idle], [], [], 0)[0], "the end of an idle session")
        assert status(other, "one") is CLAIMED
    finally:
        server.run("ALTER ROLE sub RESET idle_session_timeout")


@requirement("kernel:retention")
def test_only_what_is_done_is_removed_after_14_days(
    ledger: KeptExecutions, server: PostgresServer, opened: Opener
) -> None:
    for name in ("old", "young", "unknown", "claimed"):
        ledger.claim(entry(name))
    for name, end in (("old", DONE), ("young", DONE), ("unknown", UNKNOWN)):
        ledger.finish(hash_of(name), end)
    for name, days in (("old", 15), ("young", 13), ("unknown", 400), ("claimed", 400)):
        server.run(
            f"UPDATE subluminal_executions SET ended_at = now() - interval '{days} days',"
            f" claimed_at = now() - interval '{days} days' WHERE intent_hash = '{hash_of(name)}'"
        )
    fresh = opened(server.url)
    assert fresh.claim(entry("next")) is None
    assert status(fresh, "old") is None
    kept = {name: status(fresh, name) for name in ("young", "unknown", "claimed")}
    assert kept == {"young": DONE, "unknown": UNKNOWN, "claimed": CLAIMED}


def test_sixteen_processes_may_make_the_table_at_once(server: PostgresServer, home: Places) -> None:
    claimants = [Claimant(server.url, home, str(number)) for number in range(8)]
    try:
        for claimant in claimants:
            claimant.reach("claimed")
    finally:
        for claimant in claimants:
            claimant.__exit__()


def test_a_user_who_may_not_create_tables_can_use_one(
    ledger: KeptExecutions, server: PostgresServer, opened: Opener
) -> None:
    server.run("DROP ROLE IF EXISTS plain")
    server.run("CREATE ROLE plain LOGIN")
    rights = "SELECT, INSERT, UPDATE, DELETE ON subluminal_executions"
    server.run(f"GRANT {rights} TO plain")
    try:
        ledger.claim(entry("one"))
        plain = opened(server.url.replace("sub@", "plain@"))
        assert status(plain, "one") is CLAIMED
        assert plain.claim(entry("two")) is None
        plain.close()
    finally:
        server.run(f"REVOKE {rights} FROM plain")
        server.run("DROP ROLE plain")
