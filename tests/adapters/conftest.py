"""Every test of the wire has a home, and nothing that it starts outlives it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.desk import Desk
from tests.adapters.wire import Wire


@pytest.fixture
def home(own_home: Path) -> Path:
    return own_home


@pytest.fixture
def desk(home: Path) -> Callable[..., Desk]:
    return lambda *policies, **options: Desk(home, *policies, **options)


@pytest.fixture
def wire(home: Path, tmp_path: Path) -> Iterator[Callable[..., Wire]]:
    """Starts shims; ends and collects those that a failed test left."""
    started: list[Wire] = []

    def start(upstream: list[str], **options: Any) -> Wire:
        started.append(Wire(upstream, home=home, place=tmp_path, **options))
        return started[-1]

    yield start
    for each in started:
        each.abandon()
