"""A home with journals and a ledger."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ledger.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(str(tmp_path / "home"))
    yield made
    made.close()
