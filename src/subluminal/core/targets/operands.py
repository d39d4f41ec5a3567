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
    exact = programs.EXACT_WRITES.get(name)
    if exact is not None:
        for value in _values(argv, exact):
            found.path(value, "write", directories)
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
    if operands.last and len(given.words) > 1 and paths[-1:] == given.words[-1:]:
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


def _values(argv: list[str], options: tuple[str, ...]) -> Iterator[str]:
    """Yields the values of options, behind `=` or in the next word."""
    for word, value in pairwise((*argv[1:], "")):
        option, has_value, given = word.partition("=")
        if option in options:
            yield given if has_value else value


def _dd(argv: list[str], found: Found, directories: Directories) -> None:
    for word in argv[1:]:
        key, _, value = word.partition("=")
        if key in ("if", "of"):
            found.path(value, "read" if key == "if" else "write", directories)


def _curl(argv: list[str], found: Found, directories: Directories) -> None:
    for word in argv[1:]:
        is_short = word[:1] == "-" and word[1:2] != "-"
        if word.startswith("--remote-name") or (is_short and "O" in word):
            found.path(".", "write", directories)
        if "%output" in word:
            found.opaque("curl writes files that its format names")
        for sent in _SENT.findall(word):
            found.path(sent, "read", directories)
    for cookies in _values(argv, ("-b", "--cookie")):
        if "=" not in cookies:
            found.path(cookies, "read", directories)
    joined = [word[2:] for word in argv if word[:2] == "-x" and len(word) > 2]
    for place in (*_values(argv, _PROXIES), *joined):
        found.host(named_host(place.partition("://")[2] or place) or place)


def _here(argv: list[str], found: Found, directories: Directories) -> None:
    if not {"-O", "-P", "-d", "--spider"}.intersection(argv):
        found.path(".", "write", directories)


def _tar(argv: list[str], found: Found, directories: Directories) -> None:
    words = _with_dash(argv)
    given = _Given(words, programs.TAR)
    letters = "".join(each[0] for each in map(_TAR_LETTERS.match, words[1:]) if each)
    long = [word for word in words if word.startswith("--")]
    extracts = "x" in letters or any(word.startswith(("--ex", "--ge")) for word in long)
    lists = "t" in letters or any(word.startswith("--li") for word in long)
    only_reads = (extracts or lists) and not any(word.startswith("--de") for word in long)
    for path, access in given.paths:
        is_read = access == "read" and only_reads
        found.path(path, "read" if is_read else "write", directories)
    if extracts and all(access == "read" for _, access in given.paths):
        found.path(".", "write", directories)
    if extracts and ("P" in letters or any(word.startswith("--ab") for word in long)):
        found.opaque("tar writes where the archive says")


def _with_dash(argv: list[str]) -> list[str]:
    """Returns the words of tar with the old style `xfC a b` written as `-x -f a -C b`."""
    if len(argv) < 2 or argv[1].startswith("-"):
        return argv
    rest = iter(argv[2:])
    words = [argv[0]]
    for letter in argv[1]:
        words.append(f"-{letter}")
        if letter in "fCbTXgKNVLFI":
            words.append(next(rest, ""))
    return [*words, *rest]


def _zip(argv: list[str], found: Found, directories: Directories) -> None:
    for archive in [word for word in argv[1:] if not word.startswith("-")][:1]:
        found.path(archive, "write", directories)


def _rsync(argv: list[str], found: Found, _directories: Directories) -> None:
    if any(_JOINED_E.match(word) for word in argv[1:]):
        found.opaque("an option of `rsync` runs commands")


def _make(argv: list[str], found: Found, _directories: Directories) -> None:
    if "-" in _values(argv, ("-f", "--file", "--makefile")):
        found.opaque("make reads rules from its input")


def _docker(argv: list[str], found: Found, directories: Directories) -> None:
    if argv[1:2] == ["cp"] and ":" not in argv[-1]:
        found.path(argv[-1], "write", directories)


def _ssh(argv: list[str], found: Found, _directories: Directories) -> None:
    for word, value in pairwise((*argv[1:], "")):
        if word.startswith("-o"):
            setting = (word[2:] or value).lower().replace(" ", "=", 1)
            if not _SSH_PLAIN.match(setting):
                found.opaque(f"`{argv[0]} -o {setting[:40]}` may run commands or lead elsewhere")
        elif word.startswith("-J"):
            for jump in (word[2:] or value).split(","):
                found.host(named_host(jump) or jump)


def _sqlite(argv: list[str], found: Found, _directories: Directories) -> None:
    operands = [word for word in argv[1:] if not word.startswith("-")]
    is_code = any(_SQL_ACTS.search(word) for word in operands[1:])
    if is_code or (len(operands) < 2 and "-version" not in argv):
        found.opaque("sqlite3 may run commands or write files")


def _database(argv: list[str], found: Found, _directories: Directories) -> None:
    if any(_CLIENT_ACTS.search(word) for word in argv[1:]):
        found.opaque(f"{argv[0]} may run commands or write files")


_JOINED_E = re.compile("-[A-DF-Za-df-z0-9]*e")
_TAR_LETTERS = re.compile("-[A-Za-z](?:(?<![fCbTXgKNVLFI])[A-Za-z])*")
_SENT = re.compile(r"(?:^@|=[@<]|^-[A-Za-z]@)([^;]+)")
_PROXIES = (
    "-x",
    "--proxy",
    "--url",
    "--doh-url",
    "--preproxy",
    "--socks4",
    "--socks4a",
    "--socks5",
    "--socks5-hostname",
)
_SSH_PLAIN = re.compile(
    "(?:stricthostkeychecking|connecttimeout|batchmode|loglevel|serveralive[a-z]*|identitiesonly"
    "|identityfile|port|user|passwordauthentication|preferredauthentications|connectionattempts"
    "|tcpkeepalive|compression|pubkeyauthentication|userknownhostsfile=/dev/null$)(?:=|$)?"
)
_SQL_ACTS = re.compile(
    r"writefile|readfile|load_extension|edit\(|attach|vacuum\s+into", re.IGNORECASE
)
_CLIENT_ACTS = re.compile(r"\\|\bprogram\b|\bsystem\b|\boutfile\b|--tee|--pager", re.IGNORECASE)
_SOFT = re.compile("-[bdfFiLnPrvT]*s|--sy")
_SPECIAL: dict[str, Callable[[list[str], Found, Directories], None]] = {
    **dict.fromkeys(programs.WRITES_HERE, _here),
    "ln": _ln,
    "dd": _dd,
    "tar": _tar,
    "curl": _curl,
    "zip": _zip,
    "rsync": _rsync,
    "make": _make,
    "sqlite3": _sqlite,
    **dict.fromkeys(("docker", "podman", "nerdctl"), _docker),
    **dict.fromkeys(("ssh", "scp", "sftp"), _ssh),
    **dict.fromkeys(("psql", "mysql", "mariadb"), _database),
}
