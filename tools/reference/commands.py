"""Generates the page of commands from the table of commands and their parsers."""

import argparse
import importlib
from collections.abc import Iterator

from tools.reference.markdown import page, table

from subluminal.cli.frame import parser_of
from subluminal.cli.table import COMMANDS, Command, Group


def pages() -> dict[str, str]:
    """Returns one page with every command that is not hidden."""
    parts = [_section(path, command) for path, command in _visible()]
    return {
        "docs/reference/commands.md": page(
            "Commands",
            "stdout is data, stderr is talk. [Exit codes](exit-codes.md) are the same everywhere.",
            *parts,
        )
    }


def _visible() -> Iterator[tuple[str, Command]]:
    for name, entry in COMMANDS.items():
        if isinstance(entry, Group):
            for verb, command in entry.commands.items():
                if not command.hidden:
                    yield f"{name} {verb}", command
        elif not entry.hidden:
            yield name, entry


def _section(path: str, command: Command) -> str:
    module = importlib.import_module(command.module)
    parser = parser_of(module, command, path)
    summary = command.summary[:1].upper() + command.summary[1:]
    parts = [f"## sub {path}", f"{summary}."]
    # argparse has no public list of a parser's arguments.
    rows = [_row(action) for action in parser._actions if action.dest != "help"]
    if rows:
        parts.append(table(["argument", "meaning"], rows))
    parts.append(f"```\n{module.EXAMPLE}\n```")
    return "\n\n".join(parts)


def _row(action: argparse.Action) -> tuple[str, str]:
    # Built here, not by argparse's formatter, whose layout differs between Python versions.
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices is not None:
        metavar = "|".join(map(str, action.choices))
    if not action.option_strings:
        return f"`{metavar}`", (action.help or "").replace("%%", "%")
    value = "" if action.nargs == 0 else f" {metavar}"
    if action.nargs == "?":
        value = f"[={metavar}]"  # with a space, the next word would be taken as the value
    names = ", ".join(f"`{name}{value}`" for name in action.option_strings)
    return names, (action.help or "").replace("%%", "%")
