"""A home with journals and a ledger."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import sub
from tests.ledger.home import Home
from tests.ledger.process import Ledgerd
from tests.shim.conftest import person
from tests.shim.household import Household

from subluminal.config.places import Places

__all__ = ["person", "sub"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(str(tmp_path / "home"))
    yield made
    made.close()


@pytest.fixture
def ledgerd(home: Home) -> Iterator[Callable[..., Ledgerd]]:
    """Starts daemons of the home; none outlives the test."""
    started: list[Ledgerd] = []

    def start(*words: str, places: Places | None = None) -> Ledgerd:
        made = Ledgerd(places or home.places, *words)
        started.append(made)
        return made

    yield start
    for each in started:
        each.close()


@pytest.fixture
def household(tmp_path: Path, home: Home, subreaper: None) -> Iterator[Household]:
    """Real shims in the home."""
    made = Household(tmp_path, Path(home.places.home))
    yield made
    made.clean()
