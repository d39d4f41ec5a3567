"""Start-up is a feature (D16): what is loaded, by list of modules."""

import subprocess
import sys

import pytest

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


def loaded_by(code: str) -> set[str]:
    """The modules that some code adds to a bare interpreter."""
    script = f"import sys; before = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
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


@pytest.mark.parametrize("module", ["canonical", "contracts.events", "contracts.templates"])
def test_deciding_packages_load_no_io(module: str) -> None:
    loaded = loaded_by(f"import subluminal.{module}")
    assert not loaded & {"asyncio", "logging", "subprocess", "sqlite3", "yaml", "tomllib", "json"}
