"""Journals in a temporary directory, and disks that are really full."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.journal.lines import Writer


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    with contextlib.closing(Writer(str(tmp_path / "journal" / "run"))) as made:
        yield made


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], str]]:
    """Makes file systems of a given size: tmpfs, which says ENOSPC as a real disk does."""
    mounted: list[str] = []

    def make(size_bytes: int) -> str:
        place = tmp_path / f"disk{len(mounted)}"
        place.mkdir()
        options = f"size={size_bytes},mode=700"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True)
        mounted.append(str(place))
        return os.path.join(place, "journal")

    yield make
    for place in mounted:
        # Lazily: a test that failed may have left a file open.
        subprocess.run(["umount", "--lazy", place], check=True)
