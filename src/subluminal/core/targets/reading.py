"""Reads the targets of a call from its arguments, by a table of tools (one-matcher-per-idea)."""

import os
import re
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from subluminal.contracts.targets import Targets
from subluminal.core.targets.found import Found
from subluminal.core.targets.hosts import urls_in
from subluminal.core.targets.patches import files_of
from subluminal.core.targets.paths import roots_of
from subluminal.core.targets.table import CLIENT_TOOLS, Argument, Kind, Table, Tool

_MAX_PATCH_CHARS = 1_048_576
_NO_TARGETS = Targets()
_NOWHERE = "/a-directory-that-is-not-known"


def targets_of(
    server_name: str,
    tool_name: str,
    args: dict[str, Any],
    *,
    cwd: str,
    table: Table = CLIENT_TOOLS,
) -> Targets:
    """Returns what a call touches. A tool that is not in the table has no targets.

    `cwd` is the absolute path of the directory in which the call acts.
    """
    tool = table.get(server_name, {}).get(tool_name)
    if tool is None:
        return _NO_TARGETS
    found = Found(cwd, os.environ.get("HOME", ""))
    if tool.unreadable:
        found.opaque(tool.unreadable)
    elif not _is_directory(cwd):
        found.opaque("the working directory is not known")
    else:
        _read(tool, args, found, _directory(tool, args, found))
    return found.targets(roots_of(cwd) if _is_directory(cwd) else [])


def _is_directory(path: str) -> bool:
    return path.startswith("/") and "\0" not in path


def targets_later(
    server_name: str, tool_name: str, args: dict[str, Any], *, table: Table = CLIENT_TOOLS
) -> tuple[Targets, bool] | None:
    """Reads the targets of a recorded call, whose directory is not known.

    Returns the targets and whether they are all known; if not, paths and roots are not. None if
    nothing can be told: a glob, or a word that depends on the directory.
    """
    tool = table.get(server_name, {}).get(tool_name)
    if tool is None:
        return _NO_TARGETS, True
    found = Found(_NOWHERE, os.environ.get("HOME", ""))
    if tool.unreadable:
        found.opaque(tool.unreadable)
    else:
        _read(tool, args, found, _directory(tool, args, found))
    targets = found.targets([])
    words = [word for words in targets.commands for word in words]
    if found.globs or any(_NOWHERE in word for word in words):
        return None
    return replace(targets, paths=[]), not targets.paths


def _directory(tool: Tool, args: dict[str, Any], found: Found) -> tuple[str, ...] | None:
    for name in tool.cwd:
        given = args.get(name)
        if given is None:
            continue
        if not isinstance(given, str) or "\0" in given:
            found.opaque(f"`{name}` is not a path")
            return None
        return (os.path.normpath(given if given.startswith("/") else f"{found.cwd}/{given}"),)
    return (found.cwd,)


def _read(
    tool: Tool, args: dict[str, Any], found: Found, directories: tuple[str, ...] | None
) -> None:
    for argument in tool.arguments:
        given = [args[name] for name in argument.names if args.get(name) is not None]
        if not given and argument.optional:
            for access in argument.access:
                found.path(".", access, directories)
        elif not given:
            found.opaque(f"the call has no argument `{argument.names[0]}`")
        for value in given:
            _value(argument, value, found, directories)


def _value(
    argument: Argument, value: Any, found: Found, directories: tuple[str, ...] | None
) -> None:
    """Reads one argument. A list stands for several paths, or for the words of a command."""
    texts = value if isinstance(value, list) and value else [value]
    if not all(isinstance(text, str) and "\0" not in text for text in texts):
        found.opaque(f"`{argument.names[0]}` is not a {argument.kind}")
    elif argument.kind == "command" and texts is value:
        _argv(texts, found, directories)
    else:
        for text in texts:
            _READERS[argument.kind](argument, text, found, directories)


def _command(
    _argument: Argument, text: str, found: Found, directories: tuple[str, ...] | None
) -> None:
    from subluminal.core.targets.line import read_line

    read_line(text, found, directories)


def _url(_argument: Argument, text: str, found: Found, directories: tuple[str, ...] | None) -> None:
    if not found.url(text, directories):
        found.opaque(f"`{text[:80]}` is not a URL")


def _prose(
    _argument: Argument, text: str, found: Found, directories: tuple[str, ...] | None
) -> None:
    for url in urls_in(text):
        found.url(url, directories)


def _argv(words: list[str], found: Found, directories: tuple[str, ...] | None) -> None:
    from subluminal.core.targets.commands import Commands
    from subluminal.core.targets.line import read_line

    commands = Commands(
        found, lambda text, places, depth: read_line(text, found, places, depth + 1)
    )
    commands.argv(words, directories, 0)


def _path(
    argument: Argument, value: str, found: Found, directories: tuple[str, ...] | None
) -> None:
    if any(mark in value for mark in "*?[") and argument.names[0] in ("paths", "include"):
        found.opaque(f"`{value[:80]}` may be several files")
    if value == "~" or value.startswith("~/"):
        # Some tools resolve `~` and others do not: both are matched.
        for access in argument.access:
            found.path(found.home + value[1:], access, directories)
    for access in argument.access:
        found.path(value, access, directories)


def _pattern(
    _argument: Argument, text: str, found: Found, directories: tuple[str, ...] | None
) -> None:
    """Reads a glob that a tool resolves: it may lead out of the directory in which it begins."""
    if text.startswith(("/", "~")):
        fixed = re.split(r"[*?\[{]", text, maxsplit=1)[0].rpartition("/")[0] or "/"
        found.path(found.home + fixed[1:] if text[0] == "~" else fixed, "read", directories)
    if ".." in text:
        found.opaque(f"`{text[:80]}` leads out of its directory")


def _patch(
    _argument: Argument, value: str, found: Found, directories: tuple[str, ...] | None
) -> None:
    files = files_of(value) if len(value) <= _MAX_PATCH_CHARS else None
    if files is None:
        found.opaque("the patch cannot be read")
    for each in files or ():
        found.path(each, "write", directories)


_READERS: dict[Kind, Callable[[Argument, str, Found, tuple[str, ...] | None], None]] = {
    "command": _command,
    "path": _path,
    "url": _url,
    "patch": _patch,
    "text": _prose,
    "pattern": _pattern,
}
