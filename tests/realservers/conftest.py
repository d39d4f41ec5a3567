"""Installs the real servers once."""

from pathlib import Path

import pytest

from tools import realservers


@pytest.fixture(scope="session")
def installed() -> Path:
    return realservers.install()
