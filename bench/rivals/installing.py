"""Installs the rivals' packages once, under .work/, and makes them importable."""

import shutil
import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).parent
_REQUIREMENTS = _HERE / "requirements.txt"
_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
_TARGET = _HERE.parents[1] / ".work" / f"rivals-{_VERSION}"


def ensure_installed() -> None:
    """Installs the packages of requirements.txt, unless the same list is already installed."""
    done = _TARGET / "installed.txt"
    if not done.exists() or done.read_text() != _REQUIREMENTS.read_text():
        shutil.rmtree(_TARGET, ignore_errors=True)
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes"),
                *("--disable-pip-version-check", "--no-deps", "--target", str(_TARGET)),
                *("-r", str(_REQUIREMENTS)),
            ],
            check=True,
        )
        done.write_text(_REQUIREMENTS.read_text())
    sys.path.append(str(_TARGET))
