"""Puts the rivals' packages under .work/, once, and makes them importable."""

import shutil
import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).parent
_REQUIREMENTS = _HERE / "requirements.txt"
_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
_TARGET = _HERE.parents[1] / ".work" / f"rivals-{_VERSION}"


def ensure_installed() -> None:
    """Installs what requirements.txt names, unless that very list is installed already."""
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
