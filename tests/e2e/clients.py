"""Installs the real clients once, below `.work`, from the lock file beside this file.

Tests start the clients' native programs directly: a killed launcher would leave them running.
"""

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PLACE = ROOT / ".work" / "e2e"
LOCKS = [Path(__file__).with_name(name) for name in ("package.json", "package-lock.json")]


class Programs(NamedTuple):
    """Paths of the clients' programs."""

    claude: Path
    codex: Path


def install() -> Programs:
    """Installs the locked versions, unless they are installed."""
    PLACE.mkdir(parents=True, exist_ok=True)
    wanted = hashlib.sha256(b"".join(file.read_bytes() for file in LOCKS)).hexdigest()
    stamp = PLACE / ".installed"
    with open(PLACE / "lock", "w") as lock:
        # Several test processes may get here at once.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            for file in LOCKS:
                shutil.copy(file, PLACE)
            command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
            subprocess.run(command, cwd=PLACE, check=True, stdin=subprocess.DEVNULL)
            stamp.write_text(wanted)
    modules = PLACE / "node_modules"
    (claude,) = modules.glob("@anthropic-ai/claude-code-linux-*/claude")
    (codex,) = modules.glob("@openai/codex-linux-*/vendor/*/bin/codex")
    return Programs(claude, codex)
