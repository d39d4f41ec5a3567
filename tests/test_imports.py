"""Start-up is a feature (fast-start): what is loaded, by list of modules."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.requirements import requirement

HEAVY = {
    "asyncio",
    "click",
    "http.client",
    "json",
    "logging",
    "msgspec",
    "re2",
    "shutil",
    "sqlite3",
    "subprocess",
    "tomllib",
    "yaml",
}


def loaded_by(code: str, *flags: str) -> set[str]:
    """The modules that some code adds to a bare interpreter."""
    script = f"import sys; before = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    words = [sys.executable, *flags, "-c", script]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    return set(ran.stdout.splitlines()[-1].split())


def test_import_subluminal_loads_nothing_else() -> None:
    assert loaded_by("import subluminal") == {"subluminal"}


def test_the_entry_point_loads_nothing_before_it_knows_the_command() -> None:
    assert loaded_by("import subluminal.cli.main") == {
        "subluminal",
        "subluminal.cli",
        "subluminal.cli.main",
    }


def test_sub_version_loads_nothing_heavy() -> None:
    loaded = loaded_by("from subluminal.cli.main import main; main(['version'])")
    assert not loaded & HEAVY
    commands = {name for name in loaded if name.startswith("subluminal.cli.commands.")}
    assert commands == {"subluminal.cli.commands.version"}


@requirement("001-7.3:no-lookups")
def test_a_server_is_started_before_anything_that_takes_time(tmp_path: Path) -> None:
    """Under `-S`, because an installation's own `site` may load some of these."""
    code = f"""
sys.path[:0] = {sys.path!r}
import os
os.environ["SUB_HOME"] = {str(tmp_path / "home")!r}
from subluminal.cli.main import main
from subluminal.supervise import WardenHandle
def spawn(self, command, *_, **__):
    print(*set(sys.modules) - before, flush=True)
    os._exit(0)
WardenHandle.spawn = spawn
main(["shim", "stdio", "--server", "s", "--", "server"])
"""
    loaded = loaded_by(code, "-S")
    assert "subluminal.adapters.mcp_stdio.starting" in loaded
    assert not loaded & (HEAVY | {"collections", "enum", "re", "signal", "typing", "hashlib"})


@requirement("001-7.3:no-lookups")
@pytest.mark.parametrize(
    "module",
    ["canonical", "contracts.events", "contracts.templates", "kernel", "policy.evaluation"],
)
def test_deciding_packages_load_no_io(module: str) -> None:
    loaded = loaded_by(f"import subluminal.{module}")
    io = {"asyncio", "logging", "subprocess", "socket", "sqlite3", "yaml", "tomllib", "json"}
    assert not loaded & io
