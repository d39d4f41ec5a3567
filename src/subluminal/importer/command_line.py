"""What the command line of a client says about the servers that it starts.

`sub run` sees the command before the client does. Only the options that were observed to matter are
read; every other word is left to the client. Imports little, because most agents are not a client
that the importer knows.
"""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LAUNCHERS = (
    *("command", "env", "exec", "nice", "nohup", "setsid", "stdbuf", "sudo", "time", "timeout"),
    *("npx", "bunx", "pnpx"),
)
"""Programs that start the program named by one of their next words."""
PROGRAMS = {
    "claude": "claude",
    "claude-code": "claude",
    "codex": "codex",
    "gemini": "gemini",
    "gemini-cli": "gemini",
    "opencode": "opencode",
    "opencode-ai": "opencode",
    "copilot": "copilot",
    "cursor": "cursor",
    "cursor-agent": "cursor",
    "code": "vscode",
    "claude-desktop": "claude-desktop",
}
"""Programs, and packages as `npx` takes them, with the client that each of them is."""
_SHELLS = ("sh", "bash", "dash", "zsh")
_DURATION = re.compile(r"[0-9.]+[smhd]?")
_END_OF_COMMAND = re.compile(r"[;&|()]+")
_ASKS_ONLY = frozenset(("-h", "--help", "-v", "-V", "--version"))
_NO_AGENT = {
    "claude": ("auth", "config", "doctor", "install", "mcp", "plugin", "setup-token", "update"),
    "codex": (
        *("app-server", "apply", "cloud", "completion", "debug", "features", "help", "login"),
        *("logout", "mcp", "mcp-server", "sandbox", "update"),
    ),
}
"""Subcommands that start no agent. `claude mcp list` does start servers, but makes no call."""


class Started(NamedTuple):
    """A client, and the words of its own command line after the program."""

    client: str
    words: list[str]


class Options(NamedTuple):
    """What a command line says about servers."""

    starts_agent: bool = True
    files: tuple[str, ...] = ()
    """configurations that are named, the later one counts more"""
    texts: tuple[str, ...] = ()
    """configurations that are spelled out"""
    scopes: frozenset[str] | None = None
    """the only scopes that are read; None for all"""
    profile: str | None = None
    cwd: str | None = None


def find_client(command: Sequence[str]) -> Started | None:
    """Returns the client that a command starts, directly or through a shell or launcher."""
    if os.path.basename(command[0]) in _SHELLS:
        return _in_script(command)
    rest = list(command)
    while rest and _is_prefix(rest[0]):
        rest.pop(0)
    if not rest:
        return None
    client = PROGRAMS.get(os.path.basename(rest[0]).partition("@")[0])
    return None if client is None else Started(client, rest[1:])


def _is_prefix(word: str) -> bool:
    if os.path.basename(word) in _LAUNCHERS or word.startswith("-"):
        return True
    return "=" in word or _DURATION.fullmatch(word) is not None


def _in_script(command: Sequence[str]) -> Started | None:
    """Looks for a client in the text of `sh -c TEXT`."""
    at = next((at for at, word in enumerate(command) if re.fullmatch("-[a-z]*c", word)), None)
    if at is None or at + 1 >= len(command):
        return None
    clients = map(find_client, simple_commands(command[at + 1]))
    return next(filter(None, clients), None)


def simple_commands(text: str) -> Iterator[list[str]]:
    """Yields the simple commands of a shell text, as far as they can be told apart."""
    lexer = shlex.shlex(text.replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    try:
        for word in [*lexer, ";"]:
            if not _END_OF_COMMAND.fullmatch(word):
                words.append(word)
            elif words:
                yield words
                words = []
    except ValueError:  # a quote is not closed
        return


def read_options(started: Started) -> Options:
    """Reads the words of a client's command line."""
    words = started.words
    if _ASKS_ONLY.intersection(words):
        return Options(starts_agent=False)
    if words and words[0] in _NO_AGENT.get(started.client, ()):
        return Options(starts_agent=False)
    if started.client == "claude":
        return _claude(words)
    return _codex(words) if started.client == "codex" else Options()


def _claude(words: list[str]) -> Options:
    """`--mcp-config` adds servers; some other options leave out all or some of the rest."""
    given = _values(words, "--mcp-config", several=True)
    scopes: frozenset[str] | None = None
    if {"--strict-mcp-config", "--bare", "--safe-mode"}.intersection(words):
        scopes = frozenset()
    else:
        named = _values(words, "--setting-sources")
        if named:
            scopes = frozenset(name.strip() for name in named[-1].split(","))
    return Options(
        files=tuple(each for each in given if not _is_text(each)),
        texts=tuple(each for each in given if _is_text(each)),
        scopes=scopes,
    )


def _is_text(config: str) -> bool:
    return config.lstrip().startswith("{")


def _codex(words: list[str]) -> Options:
    """`-c mcp_servers.NAME.KEY=VALUE` changes servers, `-p` adds a file, `-C` moves the project."""
    lines: dict[str, str] = {}
    for each in (*_values(words, "-c"), *_values(words, "--config")):
        key, equals, value = each.partition("=")
        if equals and key.strip().partition(".")[0] == "mcp_servers":
            lines[key.strip()] = _as_toml(value.strip())
    text = "".join(f"{key} = {value}\n" for key, value in lines.items())
    profiles = (*_values(words, "--profile"), *_values(words, "-p"))
    folders = (*_values(words, "--cd"), *_values(words, "-C"))
    return Options(
        texts=(text,) if text else (),
        scopes=frozenset({"project"}) if "--ignore-user-config" in words else None,
        profile=profiles[-1] if profiles else None,
        cwd=folders[-1] if folders else None,
    )


def _as_toml(value: str) -> str:
    """Returns a value as TOML. Codex takes what is not TOML as a string."""
    import json
    import tomllib

    try:
        tomllib.loads(f"x = {value}")
    except ValueError:
        return json.dumps(value)
    return value


def _values(words: list[str], option: str, *, several: bool = False) -> list[str]:
    """Returns the values of an option that may be repeated. With `several`, it takes many."""
    found: list[str] = []
    for at, word in enumerate(words):
        if option.startswith("--") and word.startswith(f"{option}="):
            found.append(word.removeprefix(f"{option}="))
        elif word == option:
            values = words[at + 1 :] if several else words[at + 1 : at + 2]
            for value in values:
                if several and value.startswith("-"):
                    break
                found.append(value)
    return found
