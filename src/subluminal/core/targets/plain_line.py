"""Splits lines that need no parser: words without expansions, joined by `&&`, `||`, `;` and `|`.

Most lines are of this kind. A line with a reserved word, or with `cd` in a pipeline, is parsed.
"""

import re
from typing import NamedTuple

from subluminal.contracts.targets import Access
from subluminal.core.targets.programs import RESERVED

_FIRST = r"[A-Za-z0-9_./+-]+"
_WORD = r"[A-Za-z0-9_./:@%+,-][A-Za-z0-9_./:=@%+,-]*"
_QUOTED = r"""'[^'\n]+'|"[^"\\$`\n]+\""""
_REDIRECTION = rf"2>&1|(?:[12]?>>?|&>>?|<)[ \t]*{_WORD}"
_COMMAND = re.compile(rf"{_FIRST}(?:[ \t]+(?:{_WORD}|{_QUOTED}))*", re.ASCII)
_REDIRECTED = rf"{_COMMAND.pattern}(?:[ \t]+(?:{_REDIRECTION}))*"
_LINE = re.compile(rf"{_REDIRECTED}(?:[ \t]*(?:&&|\|\||;|\|)[ \t]*{_REDIRECTED})*", re.ASCII)
_TOKEN = re.compile(
    r"""(2>&1)|[12&]?(>|<)>?[ \t]*([^\s;&|]+)|([^\s"';&|<>]+)|'([^']+)'|"([^"]+)"|(&&|\|\|?|;)"""
)
_PARSED = RESERVED | frozenset(("export", "declare", "typeset", "local", "readonly", "unset"))
"""Words in the place of a program that only the parser understands."""
_MOVES = frozenset(("cd", "command", "builtin", "time", "exec", "pushd", "popd"))
"""Commands that may change the directory of the shell."""


class PlainCommand(NamedTuple):
    """One command of a plain line."""

    operator: str
    """operator before the command"""
    words: list[str]
    """its words, quotes removed"""
    files: list[tuple[str, Access]]
    """files behind its redirections"""


def is_plain_command(text: str) -> bool:
    """Whether a command consists of words without expansions."""
    return _COMMAND.fullmatch(text) is not None


def plain_words(text: str) -> list[str]:
    """Returns the words of a plain command, quotes removed."""
    return [word or raw or quoted for _, _, _, word, raw, quoted, _ in _TOKEN.findall(text)]


def plain_commands(text: str) -> list[PlainCommand] | None:
    """Splits a line into commands; None if it must be parsed."""
    if _LINE.fullmatch(text) is None:
        return None
    found = [PlainCommand("", [], [])]
    pipes = False
    for copied, arrow, file, word, raw, quoted, operator in _TOKEN.findall(text):
        if operator:
            pipes = pipes or operator == "|"
            found.append(PlainCommand(operator, [], []))
        elif arrow:
            found[-1].files.append((file, "read" if arrow == "<" else "write"))
        elif not copied:
            found[-1].words.append(word or raw or quoted)
    names = {each.words[0] for each in found}
    if not names.isdisjoint(_PARSED) or (pipes and not names.isdisjoint(_MOVES)):
        return None
    return found
