"""A household for every test: its home, its shims, and nothing left of them afterwards."""

import subprocess

import pytest
from tests.shim.household import SUB, Household
from tests.terminal import typed


@pytest.fixture
def household(tmp_path, own_home, subreaper):
    """A household whose orphans the test process adopts and reaps."""
    home = Household(tmp_path, own_home)
    yield home
    home.clean()


@pytest.fixture
def person_at_terminal(household):
    """Runs `sub` as a person does, who types an answer to its question."""

    def run(prompt, answer, *words, code=0, **env):
        shown = typed([*SUB, *words], prompt, answer, env=household.env(**env), cwd=household.cwd)
        assert shown.code == code, shown.text
        return shown.text

    return run


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
