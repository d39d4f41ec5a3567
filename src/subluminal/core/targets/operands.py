"""The paths and hosts among the arguments of well-known programs (`programs`)."""

import os
import re
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
    given = _Given(argv, operands)
    for path, access in given.paths:
        found.path(path, access, directories)
    is_remote = os.path.basename(argv[0]) in programs.REMOTE
    paths = [
        word
        for word in given.words[given.skips :]
        if "://" not in word and not (is_remote and remote_host(word))
    ]
    if operands.last and len(paths) > 1:
        found.path(paths.pop(), cast(Access, operands.last), directories)
    if given.access:
        for path_ in paths:
            found.path(path_, cast(Access, given.access), directories)


class _Given:
    """The operands of a command, and what its options say about them."""

    def __init__(self, argv: list[str], operands: programs.Operands) -> None:
        self.access = operands.access
        self.skips = operands.skips
        self.words: list[str] = []
        self.paths: list[tuple[str, Access]] = []
        """paths that options name"""
        self._operands = operands
        words = iter(argv[1:])
        for word in words:
            if word == "--":
                self.words += words
            elif word.startswith("--"):
                self._long(word, words)
            elif word.startswith("-") and len(word) > 1:
                self._short(word, words)
            else:
                self.words.append(word)

    def _long(self, word: str, words: Iterator[str]) -> None:
        name, has_value, value = word.partition("=")
        access = self._noted(_whole(name, self._operands))
        if access is not None:
            self.paths.append((value if has_value else next(words, ""), access))
        elif name in self._operands.long_valued and not has_value:
            next(words, "")

    def _short(self, word: str, words: Iterator[str]) -> None:
        """Reads the letters of one or several options, and the value of the last."""
        for number, letter in enumerate(word[1:], start=2):
            access = self._noted(f"-{letter}")
            if access is not None or letter in self._operands.valued:
                value = word[number:] or next(words, "")
                if access is not None:
                    self.paths.append((value, access))
                return

    def _noted(self, option: str) -> Access | None:
        """Notes what an option says about operands. Returns the access of the path behind it."""
        operands = self._operands
        if option in operands.script:
            self.skips = 0
        if option in operands.in_place:
            self.access = "write"
        if option in operands.reads:
            return "read"
        return "write" if option in operands.writes else None


def _whole(name: str, operands: programs.Operands) -> str:
    """Returns the long option that a name stands for: GNU programs take its beginning too."""
    known = (*operands.writes, *operands.in_place, *operands.reads, *operands.script)
    if name in known or name in operands.long_valued:
        return name
    return next((each for each in known if each.startswith(name)), name)


def _ln(argv: list[str], found: Found, directories: Directories) -> None:
    given = _Given(argv, programs.LINK)
    is_soft = any(_SOFT.match(word) for word in argv[1:])
    sources, places = given.words, [f"{path}/" for path, _ in given.paths]
    if not places and len(sources) > 1:
        places = [sources.pop()]
    for place in places:
        found.link(place, directories)
    for source in sources:
        name = os.path.basename(source.rstrip("/"))
        for place in places:
            found.link(f"{place}/{name}", directories, shown=False)
        if not places:
            found.link(name, directories)
        # A second name of a file is a way to write it.
        found.path(source, "read" if is_soft else "write", directories)


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


_SOFT = re.compile("-[bdfFiLnPrvT]*s|--sy")
_SPECIAL: dict[str, Callable[[list[str], Found, Directories], None]] = {
    **dict.fromkeys(programs.WRITES_HERE, _here),
    "ln": _ln,
    "dd": _dd,
    "tar": _tar,
    "curl": _curl,
}
