"""Installs the real clients once, below `.work`, from the lock file beside this file.

Tests start the clients' native programs directly: a killed launcher would leave them running.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tools.realservers import PNPM

ROOT = Path(__file__).parents[2]
PLACE = ROOT / ".work" / "e2e"
LOCKS = [Path(__file__).with_name(name) for name in ("package.json", "pnpm-lock.yaml")]


class Programs(NamedTuple):
    """Paths of the clients' programs."""

    claude: Path
    codex: Path
    gemini: Path
    """a script for Node 22 or newer"""
    copilot: Path
    opencode: Path
    cache: Path
    """XDG_CACHE_HOME with the files that Copilot unpacks: 235 MB for every home without it"""


def install() -> Programs:
    """Installs the locked versions, unless they are installed."""
    PLACE.mkdir(parents=True, exist_ok=True)
    wanted = hashlib.sha256(b"".join(file.read_bytes() for file in LOCKS)).hexdigest()
    stamp = PLACE / ".installed"
    with open(PLACE / "lock", "w") as lock:
        # Several test processes may get here at once.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            _install()
            _unpack(_programs())
            stamp.write_text(wanted)
    return _programs()


def _install() -> None:
    for file in LOCKS:
        shutil.copy(file, PLACE)
    pnpm = PLACE / "pnpm"
    _run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(pnpm), PNPM])
    # npm leaves most of opencode's platforms out of its lock file, and then refuses that file.
    words = ["--frozen-lockfile", "--ignore-scripts", "--config.node-linker=hoisted"]
    _run([str(pnpm / "node_modules/.bin/pnpm"), "install", *words])


def _run(command: list[str], env: dict[str, str] | None = None) -> None:
    subprocess.run(command, cwd=PLACE, env=env, check=True, stdin=subprocess.DEVNULL)


def _programs() -> Programs:
    modules = PLACE / "node_modules"
    (claude,) = modules.glob("@anthropic-ai/claude-code-linux-*/claude")
    (codex,) = modules.glob("@openai/codex-linux-*/vendor/*/bin/codex")
    (copilot,) = modules.glob("@github/copilot-linux-*/copilot")
    gemini = modules / "@google/gemini-cli/bundle/gemini.js"
    # The baseline build needs no AVX2, so it runs on every machine.
    (opencode,) = modules.glob("opencode-linux-*-baseline/bin/opencode")
    return Programs(claude, codex, gemini, copilot, opencode, PLACE / "cache")


def _unpack(programs: Programs) -> None:
    shutil.rmtree(programs.cache, ignore_errors=True)
    env = {**os.environ, "XDG_CACHE_HOME": str(programs.cache), "COPILOT_OFFLINE": "true"}
    _run([str(programs.copilot), "--version"], env)
