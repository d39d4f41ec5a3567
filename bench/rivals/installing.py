"""Installs the rivals' packages once, under .work/, and makes them importable."""

import shutil
import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).parent
_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
_WORK = _HERE.parents[1] / ".work"


def ensure_installed(folder: str = "") -> None:
    """Installs the packages of a folder's requirements.txt, unless that very list is installed.

    `folder` is one of this folder; empty for this folder itself.
    """
    requirements = _HERE / folder / "requirements.txt"
    target = _WORK / "-".join(["rivals", *([folder] if folder else []), _VERSION])
    done = target / "installed.txt"
    if not done.exists() or done.read_text() != requirements.read_text():
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes"),
                *("--disable-pip-version-check", "--no-deps", "--target", str(target)),
                *("-r", str(requirements)),
            ],
            check=True,
        )
        done.write_text(requirements.read_text())
    sys.path.append(str(target))
