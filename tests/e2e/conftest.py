"""Fixtures of the end-to-end tests: real clients, real servers, a model of our own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.clients import Programs, install
from tests.e2e.desk import Desk
from tests.e2e.fake_model import FakeModel, Thought, ToolCall
from tests.e2e.kinds import KINDS, Kind
from tools.realservers import install as install_servers


@pytest.fixture(scope="session")
def programs() -> Programs:
    """The installed clients."""
    return install()


@pytest.fixture(scope="session")
def servers() -> Path:
    """The folder of the real MCP servers."""
    return install_servers()


@pytest.fixture
def desk(tmp_path: Path, servers: Path) -> Iterator[Desk]:
    """A desk whose agents are stopped when the test ends."""
    made = Desk(tmp_path / "desk", f"{servers / 'node/node_modules/node/bin'}:/usr/bin:/bin")
    yield made
    made.close()


@pytest.fixture
def model() -> Iterator[Callable[..., FakeModel]]:
    """`model(script, hold_at=1)`: a fake model API, closed at the end."""
    made: list[FakeModel] = []

    def make(script: list[ToolCall | Thought], **options: Any) -> FakeModel:
        made.append(FakeModel(script, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture
def fs(desk: Desk, servers: Path) -> list[str]:
    """The command line of the real filesystem server."""
    (desk.project / "a.txt").write_text("hello from the file\n")
    return [str(servers / "node/node_modules/.bin/mcp-server-filesystem"), str(desk.project)]
