"""Services know no parser and no terminal: the web page calls them too."""

import ast
from pathlib import Path

import pytest

import subluminal.operator

ROOM = Path(subluminal.operator.__file__).parent
FORBIDDEN = {"argparse", "getpass", "subluminal.cli"}


@pytest.mark.parametrize("path", sorted(ROOM.rglob("*.py")), ids=lambda path: path.stem)
def test_no_service_knows_a_parser_or_a_terminal(path):
    tree = ast.parse(path.read_text("utf-8"))
    named = {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert not {name for name in named if any(f"{name}.".startswith(f"{f}.") for f in FORBIDDEN)}
    assert "isatty" not in path.read_text("utf-8")
