"""Whether a line runs listed programs and nothing else.

An entry of the allowlist is a program, or a program with its first words: `git status`. A program
that runs what its arguments name (a shell, an interpreter, `sudo`, `xargs`, `npx`) is never allowed
by its name alone; an entry such as `python -m pytest` says what it runs.
"""

import os
import re
from collections.abc import Iterable

from subluminal.core.targets import programs
from subluminal.packs.shell.lines import Reading, is_within

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
_PACKAGES = frozenset(("exec", "x", "dlx", "init", "create", "explore"))
_SETTINGS = frozenset(("config", "set", "pkg", "publish", "token", "login", "adduser", "link"))
_STARTING = {
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _PACKAGES | _SETTINGS),
    "go": frozenset(("run", "generate", "tool", "env", "install")),
    "cargo": frozenset(("install", "publish", "login")),
    "pip": frozenset(("config", "download")),
    "gem": frozenset(("exec",)),
    "composer": frozenset(("exec", "global")),
    "dotnet": frozenset(("exec", "tool")),
    "docker": frozenset(("run", "exec", "buildx", "plugin")),
    "gh": frozenset(("alias", "extension", "ext", "codespace")),
    "kubectl": frozenset(("exec", "debug", "plugin", "run")),
}
"""Program to subcommands that run what the next words say, publish, or change what runs later."""
_AWK = frozenset(("awk", "gawk", "mawk", "nawk"))
_STARTING_OPTIONS = {
    **dict.fromkeys(_AWK, ("-f", "--file", "-E", "--exec", "-i", "--include", "-l", "--load")),
    "cargo": ("--config",),
    "cmake": ("-P", "-C", "-DCMAKE_C_COMPILER", "-DCMAKE_CXX_COMPILER", "-DCMAKE_TOOLCHAIN_FILE"),
    "docker": ("-H", "--host", "--config", "--context"),
    "go": ("-ldflags", "-overlay", "--ldflags", "--overlay"),
    "helm": ("--post-renderer", "--kubeconfig"),
    "kubectl": ("--kubeconfig",),
    "mvn": ("exec:", "-Dexec", "org.codehaus.mojo:exec"),
    "mypy": ("--python-executable", "--install-types"),
    "pip": ("--global-option", "--config-settings", "--index-url", "-i", "--extra-index-url"),
    "tox": ("-x", "--override", "-c"),
}
"""Program to the beginnings of words with which it runs other programs, or others' code."""
_PLAIN_VARIABLE = re.compile(r"[A-Za-z0-9_]+=[A-Za-z0-9_.,:+-]*")
"""A variable of make that cannot be a command."""
_LOOKING = programs.LOOKING | _AWK | frozenset(("find", "sed"))
"""Programs that may name files outside: what they write is known from the reading."""
_STEERING = frozenset(
    (".git", ".husky", ".envrc", ".claude", ".codex", ".cursor", ".gemini", ".vscode", ".mcp.json")
)
"""Files and folders of a project that tell other programs what to run."""


_JOINED_VALUE = re.compile(r"-[A-Za-z]{1,3}(/.*)|-[^/]*?(\.\./.*)")
_MAX_PLACES = 16
"""Most directories in which a command of a line may run."""


def is_listed(reading: Reading, allowlist: Iterable[str], roots: tuple[str, ...]) -> bool:
    """Whether a line is literal, runs listed programs only, and writes inside of `roots` only."""
    commands = reading.literal
    if not commands or not reading.is_clear or not _writes_inside(reading, roots):
        return False
    entries = [tuple(entry.split()) for entry in allowlist]
    lengths = [_entry_length(argv, entries) for argv in commands]
    if not all(lengths) or not _stays_inside(reading, commands, roots):
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
    if any(word.startswith(_STARTING_OPTIONS.get(name, ())) for word in argv[1:]):
        return True
    if name == "make" and not all(map(_PLAIN_VARIABLE.fullmatch, filter(_assigns, words))):
        return True
    return name in _STARTERS or not _STARTING.get(name, frozenset()).isdisjoint(words)


def _assigns(word: str) -> bool:
    return "=" in word


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


def _stays_inside(reading: Reading, commands: list[list[str]], roots: tuple[str, ...]) -> bool:
    """Whether no command leaves the roots: by `cd`, or by the name of a file outside."""
    here, places = reading.cwd, {reading.cwd}
    # Between `&&` every `cd` has succeeded. Otherwise one that failed leaves the shell where it is.
    is_sure = not {";", "|"} & set(reading.text)
    for argv in commands:
        if argv[0] == "cd":
            if len(argv) != 2 or argv[1].startswith("-"):
                return False
            moved = {_joined(place, argv[1]) for place in places}
            here = _joined(here, argv[1])
            places = {here} if is_sure else places | moved
            if not is_within(here, roots) or len(places) > _MAX_PLACES:
                return False
        elif any(_is_outside(argv, place, roots) for place in places):
            return False
    return True


def _joined(place: str, path: str) -> str:
    return os.path.normpath(os.path.join(place, path))


def _is_outside(argv: list[str], cwd: str, roots: tuple[str, ...]) -> bool:
    """Whether a command runs outside, or names a file there.

    Programs that only look may name one, but not in an option.
    """
    if not is_within(cwd, roots):
        return True
    looks = argv[0] in _LOOKING
    for word in argv[1:]:
        for piece in () if looks and not word.startswith("-") else _pieces(word):
            is_path = piece.startswith(("/", "~")) or ".." in piece.split("/")
            if is_path and not is_within(_joined(cwd, piece), roots):
                return True
    return False


def _pieces(word: str) -> list[str]:
    """Returns the parts of a word that may be a path: the word, and the value of an option."""
    found = [word, *word.partition("=")[2].split(",")]
    if word.startswith("-"):
        joined = _JOINED_VALUE.fullmatch(word)
        found += [word[2:], (joined[1] or joined[2]) if joined else ""]
    return found
