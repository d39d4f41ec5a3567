"""What every test shares: no test sees the home, the colours or the run of who starts it."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Deadlines are absolute times, which a busy machine breaks; the seed is fixed so CI is repeatable.
settings.register_profile(
    "house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")


def pytest_configure(config: pytest.Config) -> None:
    # A shell's background job ignores these two, and so would every agent that a test interrupts.
    for signum in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(signum) is signal.SIG_IGN:
            signal.signal(signum, signal.SIG_DFL)
    config.addinivalue_line("markers", "requirement(*ids): entries of tests/requirements.py")


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a home of its own, and a plain environment."""
    for name in list(os.environ):
        if name.startswith("SUB_") or name in ("NO_COLOR", "XDG_RUNTIME_DIR"):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("SUB_HOME", str(home / "sub"))
    monkeypatch.setenv("COLUMNS", "80")
    return home / "sub"
