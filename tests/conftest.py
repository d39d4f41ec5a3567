"""Fixtures of every test. No test sees the home, the colours or the run of whoever starts it."""

import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from subluminal.config.agent_environment import MARKERS
from subluminal.supervise import become_subreaper
from subluminal.system import PLAIN_POSIX
from subluminal.trust.identity.ci_systems import CI_SYSTEMS
from tools import realservers

_SET_CHILD_SUBREAPER = 36
_PLACES = ("CI", "XDG_CURRENT_DESKTOP", "DESKTOP_SESSION", "NO_COLOR", "XDG_RUNTIME_DIR")
"""Variables that say where the tests run. Those of the CI systems that we know come on top."""

# A busy machine misses deadlines, which are absolute times. The seed is fixed, so CI is repeatable.
settings.register_profile(
    "house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")


def pytest_configure(config: pytest.Config) -> None:
    # A shell's background job ignores the first two signals, and `nohup` the third. The processes
    # of a test would inherit that.
    for signum in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(signum) is signal.SIG_IGN:
            signal.signal(signum, signal.SIG_DFL)
    config.addinivalue_line("markers", "requirement(*ids): entries of tests/requirements.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--requirement", help="only tests that claim one of these, comma-separated")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = set((config.getoption("--requirement") or "").split(",")) - {""}
    if not wanted:
        return
    left = [item for item in items if wanted & _claims_of(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in left])
    items[:] = left


def _claims_of(item: pytest.Item) -> set[str]:
    return {id_ for mark in item.iter_markers("requirement") for id_ in mark.args}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out files without a wanted requirement: collecting all takes half a minute."""
    wanted = (config.getoption("--requirement") or "").split(",")
    if wanted == [""] or collection_path.suffix != ".py":
        return None
    if "e2e" in collection_path.parts:  # the real clients need an installation of their own
        return True
    if collection_path.parent.name == "contracts":  # these look at structs, not at what is emitted
        wanted = [id_ for id_ in wanted if id_.startswith("house:")]
    text = collection_path.read_text("utf-8")
    return None if any(f'"{id_}"' in text for id_ in wanted) else True


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives every test a home of its own, and nothing of the environment that we read."""
    marks = [mark for system in CI_SYSTEMS for mark in system.marks]
    ours = [name for name in os.environ if name.startswith("SUB_") and name != PLAIN_POSIX]
    for name in (*(marker.name for marker in MARKERS), *marks, *_PLACES, *ours):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("SUB_HOME", str(home / "sub"))
    monkeypatch.setenv("COLUMNS", "80")
    return home / "sub"


@pytest.fixture(scope="session")
def installed() -> Path:
    """The real servers, installed before a test takes the user's home and certificates away."""
    return realservers.install()


@pytest.fixture
def subreaper() -> Iterator[None]:
    """Makes the test process adopt orphans, so that it can reap every process that a shim leaves."""
    become_subreaper()
    yield
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
