"""`sub shim`: its help, and command lines that are wrong (exit code 2, nothing started)."""

from pathlib import Path
from typing import Any

import pytest

from subluminal.adapters.mcp_stdio.entry import USAGE
from subluminal.cli.main import main


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["stdio", "--help"]], ids=str)
def test_help(capsys: Any, words: list[str]) -> None:
    assert main(["shim", *words]) == 0
    out = capsys.readouterr().out
    assert out.startswith(USAGE)
    assert "example:\n  sub shim stdio --server git -- mcp-server-git" in out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "the only transport is `stdio`"),
        (["http"], "cannot read `http`: the only transport is `stdio`"),
        (["stdio"], "`--server NAME` is missing"),
        (["stdio", "--server="], "`--server NAME` is missing"),
        (["stdio", "--", "cat"], "`--server NAME` is missing"),
        (
            ["stdio", "--server", "@x", "--", "cat"],
            "names that begin with `@` are Subluminal's own; rename the server",
        ),
        (["stdio", "--server", "x"], "the server's command is missing after `--`"),
        (["stdio", "--server", "x", "--"], "the server's command is missing after `--`"),
        (["stdio", "--server"], "`--server` has no value"),
        (["stdio", "--server", "--", "cat"], "`--server` has no value"),
        (["stdio", "--server", "x", "--polcy", "f", "--", "cat"], "cannot read `--polcy`"),
        (["stdio", "--server", "x", "cat"], "cannot read `cat`"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_usage_errors(capsys: Any, own_home: Path, words: list[str], problem: str) -> None:
    assert main(["shim", *words]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"error: {problem}\nhint: {USAGE}\n")
    assert not own_home.exists()


def test_an_argument_after_the_dashes_is_the_server_s(household: Any) -> None:
    shim = household.start(upstream=["sh", "-c", 'echo "$1" >&2', "sh", "--help"])
    assert shim.wait() == 0
    assert shim.err == b"--help\n"


def test_the_shim_is_in_the_overview(capsys: Any) -> None:
    assert main([]) == 0
    assert "  shim         run the data plane in front of one MCP server" in capsys.readouterr().out
