"""Installs real MCP servers, clients and agent frameworks for tests, once, below `.work`.

Versions and hashes are locked in requirements/mcp*.txt, requirements/frameworks.txt and
tests/realservers/node. A stamp file has the hash of the locks, so a second call does nothing and a
changed lock installs again.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = ROOT / ".work" / "realservers"
NODE_FILES = ROOT / "tests" / "realservers" / "node"
PNPM = "pnpm@10.34.9"


def install() -> Path:
    """Installs everything, and returns its directory with `mcp1`, `mcp2` (venvs) and `node`."""
    for name in ("mcp1", "mcp2"):
        install_venv(name)
    _once(PLACE / "node", _node_locks(), _install_node)
    return PLACE


def install_venv(name: str) -> Path:
    """Installs requirements/NAME.txt into a venv of its own, and returns its interpreter."""
    file = ROOT / "requirements" / f"{name}.txt"
    _once(PLACE / name, [file], _venv_maker(file))
    return PLACE / name / "bin" / "python"


def _once(target: Path, locks: list[Path], make: Callable[[Path], None]) -> None:
    files = [Path(__file__), *locks]
    wanted = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    stamp = target / ".installed"
    PLACE.mkdir(parents=True, exist_ok=True)
    with open(f"{target}.lock", "w") as lock:
        # Several test processes may get here at once.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == wanted:
            return
        shutil.rmtree(target, ignore_errors=True)
        make(target)
        stamp.write_text(wanted)


def _venv_maker(requirements: Path) -> Callable[[Path], None]:
    uv = str(Path(sys.executable).with_name("uv"))

    def make(target: Path) -> None:
        _run([uv, "venv", "--quiet", "--python", sys.executable, str(target)])
        python = str(target / "bin" / "python")
        install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python]
        _run([*install, "--require-hashes", "-r", str(requirements)])

    return make


def _install_node(target: Path) -> None:
    target.mkdir()
    for file in _node_locks():
        shutil.copy(file, target)
    pnpm = target / "pnpm"
    _run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(pnpm), PNPM], target)
    # The inspector needs a newer Node than the machine may have; the `node` package brings it.
    command = [str(pnpm / "node_modules/.bin/pnpm"), "install", "--frozen-lockfile"]
    _run([*command, "--prefer-offline"], target)


def _node_locks() -> list[Path]:
    return [NODE_FILES / "package.json", NODE_FILES / "pnpm-lock.yaml"]


def _run(command: list[str], cwd: Path | None = None) -> None:
    done = subprocess.run(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"},
        check=False,
    )
    if done.returncode:
        said = done.stdout.decode("utf-8", "replace")
        raise SystemExit(f"error: `{' '.join(command[:4])}` failed:\n{said}")


if __name__ == "__main__":
    for wanted_venv in sys.argv[1:]:
        install_venv(wanted_venv)
    if not sys.argv[1:]:
        install()
