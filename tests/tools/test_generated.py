"""Generated files are current: schemas and reference pages match the code."""

import pytest
from tests.requirements import requirement
from tools.generated import GENERATORS, ROOT, stale

from subluminal.cli.table import COMMANDS, Group
from subluminal.config.env import VARIABLES
from subluminal.contracts.vocabulary import EventType, ReasonCode, RuleKind
from subluminal.errors import ExitCode


@requirement("house:schemas")
@pytest.mark.parametrize("name", GENERATORS)
def test_generated_files_are_current(name: str) -> None:
    assert stale(name) == [], f"run `make {name}`"


def page(name: str) -> str:
    return (ROOT / "docs" / "reference" / name).read_text("utf-8")


def test_everything_has_its_place_in_the_reference() -> None:
    for name, entry in COMMANDS.items():
        verbs = entry.commands if isinstance(entry, Group) else {"": entry}
        for verb, command in verbs.items():
            heading = f"## sub {name} {verb}".rstrip()
            assert (heading in page("commands.md")) != command.hidden, heading
    for variable in VARIABLES:
        assert f"`{variable.name}`" in page("environment.md")
    for kind in EventType:
        assert f"## {kind.value}\n" in page("events.md")
    for rule_kind in RuleKind:
        assert f"`{rule_kind.value}`" in page("bundle.md")
    for code in ExitCode:
        assert f"`{code.value}`" in page("exit-codes.md")
    for reason in ReasonCode:
        assert "**What to do.**" in page(f"reasons/{reason.value}.md")
