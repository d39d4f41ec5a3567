from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ledger.home import Home
from tests.replay.stage import Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(tmp_path, monkeypatch)
    yield made
    made.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(str(tmp_path / "home"))
    yield made
    made.close()
