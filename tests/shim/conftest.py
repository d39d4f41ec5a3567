"""A household for every test: its home, its shims, and nothing left of them afterwards."""

import pytest
from tests.shim.household import Household

from subluminal.supervise import prctl


@pytest.fixture
def household(tmp_path, own_home):
    """Adopts what shims leave, so that no other init decides how long a zombie stays."""
    prctl.become_subreaper()
    home = Household(tmp_path, own_home)
    yield home
    home.clean()
    prctl.resign_as_subreaper()
