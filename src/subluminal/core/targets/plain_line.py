"""Splits lines that need no parser: words without expansions, joined by `&&`, `||`, `;` and `|`.

Most lines are of this kind. A line with a reserved word, or with `cd` in a pipeline, is parsed.
"""

import re

from subluminal.core.targets.programs import RESERVED

_FIRST = r"[A-Za-z0-9_./+-]+"
_WORD = r"[A-Za-z0-9_./:@%+,-][A-Za-z0-9_./:=@%+,-]*"
_QUOTED = r"""'[^'\n]+'|"[^"\\$`\n]+\""""
_COMMAND = re.compile(rf"{_FIRST}(?:[ \t]+(?:{_WORD}|{_QUOTED}))*", re.ASCII)
_LINE = re.compile(
    rf"{_COMMAND.pattern}(?:[ \t]*(?:&&|\|\||;|\|)[ \t]*{_COMMAND.pattern})*", re.ASCII
)
_TOKEN = re.compile(r"""([^\s"';&|]+)|'([^']+)'|"([^"]+)"|(&&|\|\|?|;)""")
_MOVES = frozenset(("cd", "command", "builtin", "time", "exec", "pushd", "popd"))
"""Commands that may change the directory of the shell."""


def is_plain_command(text: str) -> bool:
    """Whether a command consists of words without expansions."""
    return _COMMAND.fullmatch(text) is not None


def plain_words(text: str) -> list[str]:
    """Returns the words of a plain command, quotes removed."""
    return [word or raw or quoted for word, raw, quoted, _ in _TOKEN.findall(text)]


def plain_commands(text: str) -> list[tuple[str, list[str]]] | None:
    """Splits a line into commands, each with the operator before it; None if it must be parsed."""
    if _LINE.fullmatch(text) is None:
        return None
    found: list[tuple[str, list[str]]] = [("", [])]
    pipes = False
    for word, raw, quoted, operator in _TOKEN.findall(text):
        if operator:
            pipes = pipes or operator == "|"
            found.append((operator, []))
        else:
            found[-1][1].append(word or raw or quoted)
    names = {words[0] for _, words in found}
    if not names.isdisjoint(RESERVED) or (pipes and not names.isdisjoint(_MOVES)):
        return None
    return found
