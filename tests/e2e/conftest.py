"""Fixtures of the end-to-end tests: real clients, real servers, a model of our own."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.clients import Programs, install
from tests.e2e.desk import Desk, wait_until
from tests.e2e.fake_model import FakeModel, Step
from tests.e2e.kinds import ALL_KINDS, KINDS, Kind

PROBE = [sys.executable, str(Path(__file__).with_name("probe_server.py"))]


@pytest.fixture(scope="session")
def programs() -> Programs:
    """The installed clients."""
    return install()


@pytest.fixture
def desk(tmp_path: Path, installed: Path) -> Iterator[Desk]:
    """A desk whose agents are stopped when the test ends."""
    made = Desk(tmp_path / "desk", f"{installed / 'node/node_modules/node/bin'}:/usr/bin:/bin")
    yield made
    made.close()


@pytest.fixture
def model() -> Iterator[Callable[..., FakeModel]]:
    """`model(script, hold_at=1)`: a fake model API, closed at the end."""
    made: list[FakeModel] = []

    def make(script: list[Step], **options: Any) -> FakeModel:
        made.append(FakeModel(script, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture(params=list(ALL_KINDS))
def any_kind(request: pytest.FixtureRequest) -> Kind:
    return ALL_KINDS[request.param]


@pytest.fixture
def probe() -> list[str]:
    """The command line of the probe server."""
    return PROBE


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[str]:
    """The URL of a probe server over HTTP, stopped at the end."""
    port = tmp_path / "port"
    server = subprocess.Popen([*PROBE, "http", str(port)])
    try:
        wait_until(port.exists, 10, "the port")
        yield f"http://127.0.0.1:{port.read_text()}/mcp"
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def fs(desk: Desk, installed: Path) -> list[str]:
    """The command line of the real filesystem server."""
    (desk.project / "a.txt").write_text("hello from the file\n")
    return [str(installed / "node/node_modules/.bin/mcp-server-filesystem"), str(desk.project)]
