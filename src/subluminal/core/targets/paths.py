"""Paths: made absolute, `..` removed, links resolved; the root of a repository."""

import os
import re
from functools import lru_cache

_NOT_FILES = frozenset(("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "-"))
"""Names behind which there is no file of anybody. `-` is standard input or output."""
_OPEN_FILE = re.compile("(?:/dev|/proc/self)/fd/[0-9]+")
_NETWORK = ("/dev/tcp/", "/dev/udp/")


def is_file(path: str) -> bool:
    """Whether a path may name a file: not a stream that the command has open already."""
    return path not in _NOT_FILES and _OPEN_FILE.fullmatch(path) is None


def forms_of(written: str, directory: str, *, looks: bool = True) -> tuple[str, ...]:
    """Returns a path as written, made absolute, and as links resolve it if that differs.

    `looks`: whether links are resolved at all.
    """
    joined = written if written.startswith("/") else f"{directory}/{written}"
    plain = os.path.normpath(joined)
    if plain.startswith("//"):
        plain = plain[1:]
    if not looks:
        return (plain,)
    try:
        resolved = os.path.realpath(joined)
    except (OSError, ValueError):  # a loop of links, or a NUL
        return (plain,)
    return (plain,) if resolved == plain else (plain, resolved)


def network_host(path: str) -> str | None:
    """Returns the host that bash connects to for a path such as `/dev/tcp/HOST/PORT`."""
    for prefix in _NETWORK:
        if path.startswith(prefix):
            return path[len(prefix) :].partition("/")[0]
    return None


def roots_of(cwd: str) -> list[str]:
    """Returns the repository that contains a directory, else the directory; with links resolved."""
    try:
        seen = os.stat(cwd)
    except OSError:
        return list(_roots(cwd, 0, 0))
    return list(_roots(cwd, seen.st_dev, seen.st_ino))


@lru_cache(maxsize=64)
def _roots(cwd: str, _device: int, _inode: int) -> tuple[str, ...]:
    """The directory's identity is part of the key: a link may lead elsewhere later."""
    return forms_of(_repository(os.path.normpath(cwd)) or cwd, "/")


def _repository(directory: str) -> str | None:
    while True:
        if os.path.exists(f"{directory}/.git"):
            return directory
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent
