"""Arguments that give a server the whole disk, a whole home directory, or Docker's socket."""

import os
import re
from collections.abc import Iterator, Sequence

_FILE_SERVERS = re.compile(
    r"(?i)(?:^|[-_/@.])(?:file-?systems?|files?|fs|desktop-?commander|(?:mcp-)?server-git)(?:$|[-_/@.])"
)
"""Names of servers and packages that work on files."""
_HOMES = re.compile(
    r"(?:~|\$HOME|\$\{HOME\}|\$\{env:HOME\}|\{env:HOME\}|\$\{userHome\}|%USERPROFILE%|"
    r"/(?:home|Users)(?:/[^/]+)?|/root|[A-Za-z]:[\\/]+Users(?:[\\/]+[^\\/]+)?)[\\/]*"
)
_DISKS = re.compile(r"(?://*|[A-Za-z]:[\\/]*)(?:\*{1,2})?")
_SOCKET = re.compile(r"/(?:var/)?run/docker\.sock")
_MOUNT_SOURCE = re.compile(r"(?:^|,)(?:src|source)=([^,]+)")
_VOLUME_SOURCE = re.compile(r"([A-Za-z]:[\\/][^:]*|[^:]*):")
_RUNTIMES = ("docker", "podman", "nerdctl")


def broad_paths(server: str, words: Sequence[str], user_home: str) -> Iterator[tuple[int, str]]:
    """Yields the position of each word that gives too much away, and what it gives."""
    if any(os.path.basename(word) in _RUNTIMES for word in words[:2]):
        yield from _mounts(words, user_home)
        return
    if not any(_FILE_SERVERS.search(name) for name in (server, *words)):
        return
    for at, word in enumerate(words[1:], 1):
        value = word.partition("=")[2] if word.startswith("-") else word
        told = _whole(value, user_home)
        if told:
            yield at, told


def _mounts(words: Sequence[str], user_home: str) -> Iterator[tuple[int, str]]:
    for at, word in enumerate(words):
        name, equals, given = word.partition("=")
        if name not in ("-v", "--volume", "--mount"):
            continue
        place = at if equals else at + 1
        value = given if equals else words[place] if place < len(words) else ""
        if name == "--mount":
            found = _MOUNT_SOURCE.search(value)
            source = found[1] if found else ""
        else:
            found = _VOLUME_SOURCE.match(value)
            source = found[1] if found else ""
        told = "Docker's socket" if _SOCKET.fullmatch(source) else _whole(source, user_home)
        if told:
            yield place, told


def _whole(path: str, user_home: str) -> str:
    """Returns what a path stands for, if that is too much; else nothing."""
    if not path:
        return ""
    if _DISKS.fullmatch(path):
        return f"the whole disk (`{path}`)"
    if _HOMES.fullmatch(path) or os.path.normpath(path) == os.path.normpath(user_home):
        return f"a whole home directory (`{path}`)"
    return ""
