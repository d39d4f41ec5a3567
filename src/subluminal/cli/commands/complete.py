"""`sub __complete WORDS…`: completions of the last word. The shell's script calls it."""

import argparse
import importlib

from subluminal.cli.frame import Args, Parser, find, parser_of
from subluminal.cli.output import Output
from subluminal.cli.table import COMMANDS, Command, Group
from subluminal.errors import ExitCode, UsageError

EXAMPLE = "sub __complete pol"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("words", nargs=argparse.REMAINDER, help="the command line so far")


def run(args: Args, out: Output) -> int:
    for candidate in candidates(args.words):
        out.line(candidate)
    return ExitCode.OK


def candidates(words: list[str]) -> list[str]:
    """Returns the completions of the last word."""
    prefix = words[-1] if words else ""
    return [word for word in _all(words[:-1]) if word.startswith(prefix)]


def _all(before: list[str]) -> list[str]:
    if not before:
        return [
            name
            for name, entry in COMMANDS.items()
            if not (isinstance(entry, Command) and entry.hidden)
        ]
    try:
        found, _, path = find(before)
    except UsageError:
        return []
    if isinstance(found, Group):
        return list(found.commands)
    parser = parser_of(importlib.import_module(found.module), found, path)
    choices = [
        str(choice)
        for action in parser._actions
        for choice in action.choices or ()
        if not action.option_strings or before[-1] in action.option_strings
    ]
    return [*choices, *parser.option_strings()]
