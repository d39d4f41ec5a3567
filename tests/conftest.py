"""Fixtures of every test. No test sees the home, the colours or the run of whoever starts it."""

import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from subluminal.supervise import become_subreaper

_SET_CHILD_SUBREAPER = 36

# A busy machine misses deadlines, which are absolute times. The seed is fixed, so CI is repeatable.
settings.register_profile(
    "house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")


def pytest_configure(config: pytest.Config) -> None:
    # A shell's background job ignores these two signals, and a test's agents would inherit that.
    for signum in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(signum) is signal.SIG_IGN:
            signal.signal(signum, signal.SIG_DFL)
    config.addinivalue_line("markers", "requirement(*ids): entries of tests/requirements.py")


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives every test a home of its own and an environment without our variables."""
    for name in list(os.environ):
        if name.startswith("SUB_") or name in ("NO_COLOR", "XDG_RUNTIME_DIR"):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("SUB_HOME", str(home / "sub"))
    monkeypatch.setenv("COLUMNS", "80")
    return home / "sub"


@pytest.fixture
def subreaper() -> Iterator[None]:
    """Makes the test process adopt orphans, so that it can reap every process that a shim leaves."""
    become_subreaper()
    yield
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
