"""The command surface that the spec (seed 001, section 6) promises."""

from pathlib import Path

import pytest
from tests.pack.commands import sub
from tests.requirements import requirement

COMMANDS = [
    "import",
    "restore",
    "run",
    "tail",
    "query",
    "ledgerd",
    "version",
    "doctor",
    "shim stdio",
    "policy lint",
    "policy compile",
    "policy diff",
    "policy explain",
    "secrets add",
    "secrets get",
    "secrets list",
    "secrets remove",
    "export run",
    "ingest",
]


@pytest.mark.parametrize("command", COMMANDS)
@requirement("001-6:commands")
def test_every_command_of_the_spec_has_help_with_an_example(home: Path, command: str) -> None:
    ran = sub(home, *command.split(), "--help")
    assert ran.returncode == 0
    assert f"sub {command}".encode() in ran.stdout
    assert b"example:" in ran.stdout
