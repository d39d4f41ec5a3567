"""The story is told once for all tests here: a run through a real shim. Homes leave no ledgerd."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pack.commands import sub
from tests.pack.story import Story, tell


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("SUB_"):
                patch.delenv(name)
        return tell(tmp_path_factory.mktemp("story"))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home for `sub`. A query may start ledgerd there, which ends with the test."""
    yield tmp_path / "home"
    sub(tmp_path / "home", "ledgerd", "stop")
