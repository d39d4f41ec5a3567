"""The other proxies that the shim is compared with, installed in an environment of their own."""

import os
import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).parent
_VENV = _HERE.parents[1] / ".work" / "proxies"


def python() -> str:
    """Returns the interpreter that has the proxies. Installs them once."""
    requirements = (_HERE / "requirements.txt").read_text("utf-8")
    done = _VENV / "installed.txt"
    interpreter = str(_VENV / "bin" / "python")
    if not done.exists() or done.read_text("utf-8") != requirements:
        subprocess.run([sys.executable, "-m", "venv", "--clear", _VENV], check=True)
        uv = str(Path(sys.executable).parent / "uv")
        subprocess.run(
            [
                *(uv, "pip", "install", "--quiet", "--require-hashes"),
                *("--python", interpreter, "-r", str(_HERE / "requirements.txt")),
            ],
            check=True,
            env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"},
        )
        done.write_text(requirements, "utf-8")
    return interpreter


def fastmcp(server: list[str]) -> list[str]:
    """Returns the command of FastMCP's own proxy in front of a stdio server."""
    return [python(), str(_HERE / "fastmcp_proxy.py"), *server]


def mcp_firewall(server: list[str]) -> list[str]:
    """Returns the command of mcp-firewall, with its default policy and audit log."""
    return [str(Path(python()).parent / "mcp-firewall"), "wrap", "--", *server]


def bare_python(server: list[str]) -> list[str]:
    """Returns the command of a Python proxy that only copies."""
    return [sys.executable, "-I", "-S", str(_HERE / "bare.py"), *server]


def recording_python(directory: Path, server: list[str]) -> list[str]:
    """Returns the command of a Python proxy that records calls before it forwards them."""
    directory.mkdir(parents=True, exist_ok=True)
    return [sys.executable, "-I", str(_HERE / "recording.py"), str(directory), *server]
