"""Walks over the options in front of a command's operands."""

import re

from subluminal.core.targets.programs import Options


def end_of_options(argv: list[str], options: Options, *, numbers: bool = False) -> int | None:
    """Returns the index of the first operand; None if an option is not known.

    `numbers`: `-10` is an option of its own, as in `nice -10`.
    """
    at = 1
    while at < len(argv):
        word = argv[at]
        if word == "--":
            return at + 1
        if not word.startswith("-") or word == "-":
            return at
        if numbers and re.fullmatch("-[0-9]+", word):
            at += 1
            continue
        step = _long(word, options) if word.startswith("--") else _short(word, options)
        if step is None:
            return None
        at += step
    return at


def _long(word: str, options: Options) -> int | None:
    name, has_value, _ = word.partition("=")
    if name in options.long_valued:
        return 1 if has_value else 2
    return 1 if name in options.long else None


def _short(word: str, options: Options) -> int | None:
    for number, letter in enumerate(word[1:], start=1):
        if letter in options.valued:
            return 1 if number + 1 < len(word) else 2
        if letter not in options.flags:
            return None
    return 1
