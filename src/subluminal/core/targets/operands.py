"""The paths and hosts among the arguments of well-known programs (`programs`)."""

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import cast

from subluminal.contracts.targets import Access
from subluminal.core.targets import programs
from subluminal.core.targets.found import Directories, Found
from subluminal.core.targets.hosts import named_host, remote_host, urls_in


def operand_targets(
    name: str, argv: list[str], text: str, found: Found, directories: Directories
) -> None:
    """Adds the paths and hosts that a program is given; `text` is its words joined by blanks."""
    if ":" in text:
        if "://" in text:
            _urls(argv, found, directories)
        if name in programs.REMOTE:
            _remotes(name, argv, found)
    if name in programs.HOST_OPERAND:
        _hosts(name, argv, found)
    operands = programs.OPERANDS.get(name)
    if operands is not None:
        _paths(argv, operands, found, directories)
    special = _SPECIAL.get(name)
    if special is not None:
        special(argv, found, directories)


def _remotes(name: str, argv: list[str], found: Found) -> None:
    for word in argv[1:]:
        # `git push origin main:next` names two branches.
        host = remote_host(word) if name != "git" or "@" in word or "clone" in argv else None
        if host is not None and "://" not in word:
            found.host(host)


def _urls(argv: list[str], found: Found, directories: Directories) -> None:
    for word in argv[1:]:
        if "://" in word:
            for url in urls_in(word) or [word]:
                found.url(url, directories)


def _hosts(name: str, argv: list[str], found: Found) -> None:
    valued = programs.HOST_VALUED.get(name, "")
    words = iter(argv[1:])
    for word in words:
        if word.startswith("-"):
            if _skips_next(word, valued):
                next(words, "")
            continue
        if "://" in word:
            continue
        host = named_host(word)
        if host is None:
            found.opaque(f"the host of `{word[:80]}` cannot be told")
        else:
            found.host(host)
        if name not in ("curl", "wget", "http", "https"):
            return  # what follows is a command, or a port


def _skips_next(word: str, valued: str) -> bool:
    """Whether the next word is the value of an option."""
    if word.startswith("--"):
        return word in programs.CURL_VALUED
    found = next((number for number, each in enumerate(word) if number and each in valued), None)
    return found == len(word) - 1


def _paths(
    argv: list[str], operands: programs.Operands, found: Found, directories: Directories
) -> None:
    given = _Given(operands.access, operands.skips)
    words = iter(argv[1:])
    for word in words:
        if word == "--":
            given.words += words
        elif word.startswith("-") and len(word) > 1:
            path = _option(word, words, operands, given)
            if path is not None:
                found.path(path[0], path[1], directories)
        else:
            given.words.append(word)
    is_remote = os.path.basename(argv[0]) in programs.REMOTE
    paths = [
        word
        for word in given.words[given.skips :]
        if "://" not in word and not (is_remote and remote_host(word))
    ]
    if operands.last and len(paths) > 1:
        found.path(paths.pop(), cast(Access, operands.last), directories)
    elif operands.last and paths and argv[0].endswith("ln"):
        found.path(os.path.basename(paths[0].rstrip("/")), "write", directories)
    if given.access:
        for path_ in paths:
            found.path(path_, cast(Access, given.access), directories)


class _Given:
    """The operands of a command so far, and what its options say about them."""

    def __init__(self, access: str, skips: int) -> None:
        self.access = access
        self.skips = skips
        self.words: list[str] = []


def _option(
    word: str, words: Iterator[str], operands: programs.Operands, given: _Given
) -> tuple[str, Access] | None:
    """Reads one option, or letters of several, and its value. Returns the path that it names."""
    if word.startswith("--"):
        name, has_value, value = word.partition("=")
        access = _noted(name, operands, given)
        if access is not None:
            return (value if has_value else next(words, "")), access
        if name in operands.long_valued and not has_value:
            next(words, "")
        return None
    for number, letter in enumerate(word[1:], start=2):
        access = _noted(f"-{letter}", operands, given)
        if access is not None or letter in operands.valued:
            value = word[number:] or next(words, "")
            return None if access is None else (value, access)
    return None


def _noted(option: str, operands: programs.Operands, given: _Given) -> Access | None:
    """Notes what an option says about the operands. Returns the access of the path behind it."""
    if option in operands.script:
        given.skips = 0
    if option in operands.in_place:
        given.access = "write"
    if option in operands.reads:
        return "read"
    return "write" if option in operands.writes else None


def _dd(argv: list[str], found: Found, directories: Directories) -> None:
    for word in argv[1:]:
        key, _, value = word.partition("=")
        if key in ("if", "of"):
            found.path(value, "read" if key == "if" else "write", directories)


def _curl(argv: list[str], found: Found, directories: Directories) -> None:
    for word in argv[1:]:
        is_short = word[:1] == "-" and word[1:2] != "-"
        if word == "--remote-name" or (is_short and "O" in word):
            found.path(".", "write", directories)


def _here(argv: list[str], found: Found, directories: Directories) -> None:
    if not {"-O", "-P", "-d", "--spider"}.intersection(argv):
        found.path(".", "write", directories)


def _tar(argv: list[str], found: Found, directories: Directories) -> None:
    letters = argv[1].lstrip("-") if len(argv) > 1 else ""
    writes = "x" in letters or "--extract" in argv
    place = "."
    for option, value in pairwise(argv):
        if option in ("-C", "--directory"):
            place = value
        elif option in ("-f", "--file") or (option == argv[1] and option.endswith("f")):
            found.path(value, "read" if writes or "t" in letters else "write", directories)
    if writes:
        found.path(place, "write", directories)


def _git(argv: list[str], found: Found, directories: Directories) -> None:
    if not _GIT_PLACES.isdisjoint(argv):
        for option, value in pairwise(argv):
            if option in _GIT_PLACES:
                found.path(value, "write", directories)
    if "clone" in argv:
        words = [word for word in argv[1:] if not word.startswith("-")]
        for path in words[2:3]:
            found.path(path, "write", directories)


_GIT_PLACES = frozenset(("-C", "--git-dir", "--work-tree"))
_SPECIAL: dict[str, Callable[[list[str], Found, Directories], None]] = {
    **dict.fromkeys(programs.WRITES_HERE, _here),
    "dd": _dd,
    "tar": _tar,
    "git": _git,
    "curl": _curl,
}
