"""Installs the real servers once, and gives every test two places: one direct, one shimmed."""

from pathlib import Path

import pytest

from tools import realservers


@pytest.fixture(scope="session")
def installed() -> Path:
    return realservers.install()
