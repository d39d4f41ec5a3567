"""Whether a line runs listed programs and nothing else.

An entry of the allowlist is a program, or a program with its first words: `git status`. A program
that runs what its arguments name (a shell, an interpreter, `sudo`, `xargs`, `npx`) is never allowed
by its name alone; an entry such as `python -m pytest` says what it runs.
"""

import os
import re
from collections.abc import Iterable

from subluminal.core.targets import programs
from subluminal.packs.shell.lines import HOME, Reading, is_within

_VERSION = re.compile(r"[0-9.]+$")
_STARTERS = (
    frozenset(programs.WRAPPERS)
    | programs.SHELLS
    | frozenset(programs.INTERPRETERS)
    | frozenset(programs.EDITORS)
    | frozenset(
        (
            *("less", "more", "man", "emacs", "npx", "bunx", "pnpx", "uvx", "pipx", "ssh", "mosh"),
            *("java", "open", "xdg-open", "systemctl", "service", "launchctl", "telnet", "ftp"),
            *("csh", "tcsh", "wish", "lldb", "rundll32", "cmd", "psql", "mysql", "sqlite3"),
        )
    )
)
"""Programs that run what their arguments, or their input, say."""
_STARTING = {
    "npm": frozenset(("exec", "x", "init", "create", "explore")),
    "pnpm": frozenset(("exec", "dlx", "create")),
    "yarn": frozenset(("exec", "dlx", "create")),
    "go": frozenset(("run", "generate", "tool")),
    "gem": frozenset(("exec",)),
    "composer": frozenset(("exec", "global")),
    "dotnet": frozenset(("exec", "tool")),
    "docker": frozenset(("run", "exec", "buildx", "plugin")),
    "gh": frozenset(("alias", "extension", "ext", "codespace")),
    "kubectl": frozenset(("exec", "debug", "plugin", "run")),
}
"""Program to subcommands that run what the next words say."""
_AWK = frozenset(("awk", "gawk", "mawk", "nawk"))
_SCRIPTS = ("-f", "--file", "-E", "--exec", "-i", "--include", "-l", "--load")
"""Options of awk that name a program in a file."""
_LOOKING = programs.LOOKING | _AWK | frozenset(("find", "sed"))
"""Programs that may name files outside: what they write is known from the reading."""
_STEERING = frozenset(
    (".git", ".husky", ".envrc", ".claude", ".codex", ".cursor", ".gemini", ".vscode", ".mcp.json")
)
"""Files and folders of a project that tell other programs what to run."""


def is_listed(reading: Reading, allowlist: Iterable[str], roots: tuple[str, ...]) -> bool:
    """Whether a line is literal, runs listed programs only, and writes inside of `roots` only."""
    commands = reading.literal
    if not commands or not reading.is_clear or not _writes_inside(reading, roots):
        return False
    entries = [tuple(entry.split()) for entry in allowlist]
    lengths = [_entry_length(argv, entries) for argv in commands]
    if not all(lengths) or not _stays_inside(commands, reading.cwd, roots):
        return False
    pairs = list(zip(commands, lengths, strict=True))
    return all(
        any(_covers(argv, length, inner) for argv, length in pairs)
        for inner in reading.targets.commands
    )


def _entry_length(argv: list[str], entries: list[tuple[str, ...]]) -> int:
    """Returns the number of words of the longest entry that allows a command; 0 if none does."""
    if "/" in argv[0]:
        return 0
    found = max((len(entry) for entry in entries if entry == tuple(argv[: len(entry)])), default=0)
    return 0 if found == 1 and _starts_others(argv) else found


def _starts_others(argv: list[str]) -> bool:
    name = _VERSION.sub("", argv[0].lower()) or argv[0]
    words = [word for word in argv[1:] if not word.startswith("-")]
    if name in _AWK and any(word.startswith(_SCRIPTS) for word in argv[1:]):
        return True
    return name in _STARTERS or not _STARTING.get(name, frozenset()).isdisjoint(words)


def _covers(argv: list[str], length: int, inner: list[str]) -> bool:
    """Whether `inner` is the command itself, or one that its entry names."""
    if inner == argv or inner[0] == argv[0] == "git":  # git's own words, written in another way
        return True
    at = len(argv) - len(inner)
    return 0 < at < length and argv[at:] == inner


def _writes_inside(reading: Reading, roots: tuple[str, ...]) -> bool:
    return all(
        is_within(target.path, roots) and _STEERING.isdisjoint(target.path.split("/"))
        for target in reading.targets.paths
        if target.access == "write"
    )


def _stays_inside(commands: list[list[str]], cwd: str, roots: tuple[str, ...]) -> bool:
    """Whether no command leaves the roots: by `cd`, or by the name of a file outside."""
    for argv in commands:
        if argv[0] == "cd":
            if len(argv) != 2 or argv[1].startswith("-"):
                return False
            cwd = os.path.normpath(os.path.join(cwd, argv[1]))
            if not is_within(cwd, roots):
                return False
        elif argv[0] not in _LOOKING and any(_is_outside(word, cwd, roots) for word in argv[1:]):
            return False
    return True


def _is_outside(word: str, cwd: str, roots: tuple[str, ...]) -> bool:
    for piece in (word, word.partition("=")[2], word[2:] if word.startswith("-") else ""):
        if piece.startswith(("/", "~", HOME)) or ".." in piece.split("/"):
            path = os.path.normpath(os.path.join(cwd, piece))
            if not is_within(path, roots):
                return True
    return False
