"""Both engines: a file in the test's home, and a table of one server for all tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.adapters.in_process.executions.postgres_server import PostgresServer

from subluminal.adapters.in_process.executions import KeptExecutions, open_executions
from subluminal.config.places import Places

Opener = Callable[[], KeptExecutions]


@pytest.fixture(scope="session")
def one_server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    try:
        yield server
    finally:
        server.remove()


@pytest.fixture
def server(one_server: PostgresServer) -> PostgresServer:
    """The server, running, and without the table of an earlier test."""
    one_server.start()
    one_server.run("DROP TABLE IF EXISTS subluminal_executions")
    return one_server


@pytest.fixture
def home(own_home: Path) -> Places:
    return Places(str(own_home), str(own_home / "run"))


@pytest.fixture(params=["sqlite", "postgres"])
def setting(request: pytest.FixtureRequest) -> str:
    """What `[kernel] executions` says."""
    if request.param == "sqlite":
        return "sqlite"
    return str(request.getfixturevalue("server").url)


@pytest.fixture
def opened(home: Places) -> Iterator[Callable[[str], KeptExecutions]]:
    """Opens ledgers, and closes them."""
    made: list[KeptExecutions] = []

    def open_one(setting: str) -> KeptExecutions:
        ledger = open_executions(setting, home)
        assert ledger is not None
        made.append(ledger)
        return ledger

    yield open_one
    for ledger in made:
        ledger.close()


@pytest.fixture
def ledger(setting: str, opened: Callable[[str], KeptExecutions]) -> KeptExecutions:
    return opened(setting)
