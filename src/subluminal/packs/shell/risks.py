"""Lines that are refused or confirmed, whatever programs are listed (adjudicate's command risk).

A line whose commands are all known is judged by them, so that text about `rm -rf /` is not taken
for the command. A line that is not clear is judged by its text as well.
"""

import os
import re

import re2

from subluminal.packs.shell.lines import HOME, Reading

_DESTROYERS = re.compile(r"shred|wipefs|parted|mkfs(?:\..*)?|mke2fs")
_NETWORK = frozenset(("curl", "wget", "nc", "ncat", "netcat"))
_RECURSIVE = re.compile(r"-[A-Za-z]*[rR][A-Za-z]*|--r(?:e(?:c\w*)?)?")
_CHANGES_ALL = frozenset(("chmod", "chown", "chgrp"))
_SYSTEM = re.compile(
    r"/(?:bin|boot|dev|etc|home|lib\d*|opt|proc|root|sbin|srv|sys|usr|var"
    r"|Applications|Library|System|Users|(?:home|Users)/[^/]+)?"
)
_HARMLESS_DEVICES = re.compile(r"/dev/(?:null|stdout|stderr|tty|shm/.*|fd/.*|tcp/.*|udp/.*)")
_FUNCTION = re.compile(r"(?<![\w:])([\w:]{1,64})\s{0,8}\(\s{0,8}\)\s{0,8}\{")
_BODY = 512
"""Characters of a function that are searched for a fork bomb."""
_JQ_ENVIRONMENT = re.compile(r"\$ENV\b|(?<![.\w\"'-])env\b")
_FORCED = re.compile(r"-[a-zA-Z]*[fd][a-zA-Z]*|--force.*|--mir.*|--del.*|--prune|[+:].+")
_ALL = r"(?:/\*?|~/?\*?|/?\$\{?HOME\}?/?\*?)"
_END = r"""(?:[\s"';)|&]|$)"""
# Patterns over text of any length: RE2 takes linear time, whatever the text is (linear-patterns).
_SECRET_VARIABLE = re2.compile(r"(?i)\$\{?\w*(?:SECRET|TOKEN|PASSWORD|PASSWD|KEY|CREDENTIAL)\w*")
_UNCLEAR_RUIN = re2.compile(
    rf"""(?is)\brm\b.*[\s"'](?:{_ALL}|/(?:etc|usr|var|home|root|boot)/?\*?){_END}"""
    r"|\b(?:shred|wipefs|parted|mkfs(?:\.\w+)?)\b"
    r"|\bdd\b.*\bof=/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|mapper|md|dm-|loop)"
    rf"""|\bch(?:mod|own|grp)\b.*\s-\w*R\w*\b.*[\s"']{_ALL}{_END}"""
)
_UNCLEAR_RISK = re2.compile(r"(?is)\brm\b.*\s-\w*r|\b(?:curl|wget|nc|ncat|netcat)\b")


def ruin_in(reading: Reading) -> str | None:
    """Returns the name of something that cannot be undone, and is refused; None if there is none.

    That is to destroy a disk, the root, a home or a directory of the system.
    """
    for argv in reading.targets.commands:
        found = _ruin(argv, reading.cwd)
        if found is not None:
            return found
    for target in reading.targets.paths:
        is_device = target.path.startswith("/dev/") and target.access == "write"
        if is_device and not _HARMLESS_DEVICES.fullmatch(target.path):
            return "write_to_device"
    if _has_fork_bomb(reading.text):
        return "fork_bomb"
    if not reading.is_clear and _UNCLEAR_RUIN.search(reading.text):
        return "destruction_in_unclear_line"
    return None


def _has_fork_bomb(text: str) -> bool:
    """Whether a function calls itself on both sides of a pipe."""
    for found in _FUNCTION.finditer(text):
        body = "".join(text[found.end() : found.end() + _BODY].split())
        if f"{found[1]}|{found[1]}" in body:
            return True
    return False


def _ruin(argv: list[str], cwd: str) -> str | None:
    name = os.path.basename(argv[0]).lower()
    if _DESTROYERS.fullmatch(name):
        return name.partition(".")[0]
    if name == "dd" and any(_is_device(word) for word in argv):
        return "dd_to_device"
    if any(_is_everything(word, cwd) for word in argv[1:]) and _destroys(name, argv):
        return f"{name}_of_root_or_home"
    return None


def _destroys(name: str, argv: list[str]) -> bool:
    """Whether a command deletes or changes all of what it names."""
    if name in _CHANGES_ALL:
        return is_recursive(argv)
    deletes = "-delete" in argv or "rm" in map(os.path.basename, argv)
    return name == "rm" or (name == "find" and deletes)


def _is_device(word: str) -> bool:
    path = os.path.normpath(word[3:]) if word.startswith("of=") else ""
    return path.startswith("/dev/") and not _HARMLESS_DEVICES.fullmatch(path)


def _is_everything(word: str, cwd: str) -> bool:
    """Whether a word names the root, a home, a directory of the system, or all that is in one."""
    if word.startswith("-"):
        return False
    path = os.path.normpath(os.path.join(cwd, word)).replace("//", "/")
    while path.endswith(("/*", "/.*")):
        path = os.path.dirname(path)
    return path == HOME or _SYSTEM.fullmatch(path) is not None


def is_recursive(argv: list[str]) -> bool:
    """Whether a command has an option such as `-r`, `-rf` or `--recursive`."""
    options = argv[1 : argv.index("--")] if "--" in argv else argv[1:]
    return any(_RECURSIVE.fullmatch(word) for word in options)


def _risk(argv: list[str]) -> str | None:
    name = os.path.basename(argv[0]).lower()
    if name == "rm" and is_recursive(argv):
        return "rm_recursive"
    if name in _NETWORK:
        return "network"
    if _shows_environment(name, argv):
        return "environment"
    return "force_push" if name == "git" and _rewrites_remote(argv) else None


def _shows_environment(name: str, argv: list[str]) -> bool:
    """Whether a command prints variables, which may hold secrets."""
    words = argv[1:]
    if name == "ps":
        return any("e" in word for word in words[:1] if word.isalpha())
    if name == "jq":
        return any(_JQ_ENVIRONMENT.search(word) for word in words)
    return name == "printenv" or (name in ("env", "set", "export", "declare") and not words)


def _rewrites_remote(argv: list[str]) -> bool:
    """Whether a push rewrites or deletes what others have."""
    return argv[1:2] == ["push"] and any(map(_FORCED.fullmatch, argv[2:]))


def risk_in(reading: Reading) -> str | None:
    """Returns the name of a risk that a person must confirm; None if there is none."""
    found = next(filter(None, map(_risk, reading.targets.commands)), None)
    if found is not None:
        return found
    if reading.literal is None and _SECRET_VARIABLE.search(reading.text):
        return "secret_variable"
    if not reading.is_clear and _UNCLEAR_RISK.search(reading.text):
        return "risk_in_unclear_line"
    return None
