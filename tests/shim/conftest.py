"""A household for every test: its home, its shims, and nothing left of them afterwards."""

import subprocess

import pytest
from tests.shim.household import SUB, Household


@pytest.fixture
def household(tmp_path, own_home, subreaper):
    """A household whose orphans the test process adopts and reaps."""
    home = Household(tmp_path, own_home)
    yield home
    home.clean()


@pytest.fixture
def person(household):
    """Runs `sub` as a person does, in a shell of their own."""

    def run(*words, code=0, all_output=False, **env):
        ran = subprocess.run(
            [*SUB, *words], capture_output=True, env=household.env(**env), cwd=household.cwd
        )
        assert ran.returncode == code, ran.stderr.decode()
        if all_output:
            return (ran.stdout + ran.stderr).decode()
        return ran.stdout.decode() if code == 0 else ran.stderr.decode()

    return run
