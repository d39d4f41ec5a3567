"""Every test here runs once for each kind of door."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.transports.doors import DOORS, Doorway


@pytest.fixture(params=DOORS)
def doorway(request: pytest.FixtureRequest, own_home: Path, tmp_path: Path) -> Iterator[Doorway]:
    doorway = Doorway(request.param, own_home, tmp_path)
    yield doorway
    doorway.close()
