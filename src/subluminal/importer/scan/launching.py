"""What the command line of an entry starts: which package or image, which version, which shell.

Reads the options of the launchers that people use for MCP servers. What is not recognised is not
reported: a scanner that guesses is switched off.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from subluminal.importer.command_line import simple_commands
from subluminal.importer.env_secrets import is_reference

_PREFIXES = ("command", "env", "exec", "nice", "nohup", "setsid", "stdbuf", "sudo", "time")
"""Programs that start the program named by one of their next words."""
_SHELLS = ("sh", "bash", "dash", "zsh", "fish", "ksh")
_POWERSHELLS = ("powershell", "pwsh")
_RUNS_TEXT = re.compile(r"-[a-z]*c|--command")
_RUNS_TEXT_TOO = re.compile(r"(?i)-(?:c|command|encodedcommand|enc|e)")
_SHELL_SIGNS = re.compile(r"[;&|<>`]|\$\(")
_DOWNLOADS = re.compile(
    r"(?is)\b(?:curl|wget|iwr|invoke-webrequest|irm)\b.*(?:\|\s*(?:sudo\s+)?(?:\w*sh|python\d?|node|"
    r"iex)\b|\beval\b)|\b(?:eval|source|\w*sh)\b\s+(?:-c\s+)?[\"']?(?:\$\(|<\(|`)\s*(?:curl|wget)\b"
)
_MAX_SHELL_CHARS = 65_536

_NPM_VALUES = ("--registry", "--cache", "--prefix", "--userconfig", "--node-options", "-w")
_UV_VALUES = (
    *(
        "--with",
        "--with-editable",
        "--with-requirements",
        "--python",
        "-p",
        "--index",
        "--index-url",
    ),
    *("--default-index", "--extra-index-url", "--directory", "--project", "--env-file", "-c"),
    *("--constraints", "--overrides", "--refresh-package", "--cache-dir", "--config-file", "-w"),
)
_PIPX_VALUES = ("--python", "--pip-args", "--index-url", "-i", "--with")
_DOCKER_FLAGS = re.compile(
    r"-[ditP]+|--(?:rm|interactive|tty|detach|init|privileged|read-only|quiet|publish-all|"
    r"no-healthcheck|oom-kill-disable|sig-proxy|disable-content-trust|[a-z-]+=.*)|-[a-zA-Z][^-].*"
)
"""Options of `docker run` that take no further word."""
_DOCKERS = ("docker", "podman", "nerdctl")

_NPM_EXACT = re.compile(r"=?v?\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?")
_PYTHON_EXACT = re.compile(r"v?\d+(?:\.\d+)+(?:[-+.]?[0-9A-Za-z]+)*|\d{4}\.\d+.*")
_REVISION = re.compile(r"[0-9a-f]{7,40}|v?\d+\.\d+(?:\.\d+)?(?:[-+.][0-9A-Za-z.-]+)?")
_IMAGE_EXACT = re.compile(r"(?=.*\d)(?:v?\d+[.-]\d+.*|.*[0-9a-f]{7,}.*|.*\d+\.\d+\.\d+.*|\d{6,})")
_USERINFO = re.compile(r"://[^/@]*@")
"""Name and password in a URL, which must not get into a message."""
_LOCAL = ("./", "../", "/", "~", "file:", ".\\")


class Package(NamedTuple):
    """A package or image that an entry starts."""

    launcher: str
    """as a person types it: `npx`, `uvx`, `docker run`"""
    name: str
    """without the version"""
    version: str
    """as written; empty if there is none"""
    pinned: bool
    word: int
    """position of the word that names it"""


class Launch(NamedTuple):
    """What a command line starts."""

    packages: tuple[Package, ...] = ()
    shell_text: str | None = None
    """the text that a shell runs; None if no shell runs a text"""

    @property
    def downloads(self) -> bool:
        """Whether the shell downloads a program and runs it."""
        return self.shell_text is not None and _downloads(self.shell_text)


def _downloads(text: str) -> bool:
    return _DOWNLOADS.search(text[:_MAX_SHELL_CHARS]) is not None


def read_launch(words: Sequence[str]) -> Launch:
    """Reads a server's own command line, without our wrapper."""
    at = _after_prefixes(words)
    name = _program(words, at)
    if name == "cmd" and words[at + 1 : at + 2] and words[at + 1].lower() in ("/c", "/k"):
        line = " ".join(words[at + 2 :])
        return Launch(_packages(words, at + 2), line if _SHELL_SIGNS.search(line) else None)
    text = _shell_text(name, words[at + 1 :])
    if text is None:
        return Launch(_packages(words, at))
    place = list(words).index(text) if text in words else at
    inner = [p._replace(word=place) for p in _inner_packages(text)]
    return Launch(tuple(inner), text)


def program_of(words: Sequence[str]) -> str:
    """Returns a name for the software that a command line starts, whatever version it has."""
    launch = read_launch(words)
    if launch.packages:
        return launch.packages[0].name
    scripts = [word for word in words if re.search(r"\.(?:js|mjs|cjs|ts|py)$", word)]
    return scripts[0] if scripts else os.path.basename(words[0]) if words else ""


def _after_prefixes(words: Sequence[str]) -> int:
    at = 0
    while at < len(words) and _program(words, at) in _PREFIXES:
        at += 1
        while at < len(words) and (words[at].startswith("-") or "=" in words[at]):
            at += 1
    return at


def _program(words: Sequence[str], at: int) -> str:
    if at >= len(words):
        return ""
    name = re.split(r"[/\\]", words[at])[-1].lower()
    return re.sub(r"\.(?:exe|cmd|bat|ps1)$", "", name)


def _shell_text(name: str, rest: Sequence[str]) -> str | None:
    option = _RUNS_TEXT if name in _SHELLS else _RUNS_TEXT_TOO if name in _POWERSHELLS else None
    for at, word in enumerate(rest) if option else ():
        if option is not None and option.fullmatch(word):
            return rest[at + 1] if at + 1 < len(rest) else ""
        if not word.startswith("-"):
            return None  # a script in a file
    return None


def _inner_packages(text: str) -> Iterator[Package]:
    for words in simple_commands(text):
        yield from _packages(words[_after_prefixes(words) :], 0)


def _packages(words: Sequence[str], at: int) -> tuple[Package, ...]:
    words = [_USERINFO.sub("://", word) for word in words]
    name, then = _program(words, at), words[at + 1 :]
    first = then[0] if then else ""
    found: Package | None = None
    if name in ("npx", "bunx", "pnpx"):
        found = _npm(name, words, at + 1)
    elif (name, first) in _NPM_VERBS:
        found = _npm(f"{name} {first}", words, at + 2)
    elif name == "uvx":
        found = _python("uvx", words, at + 1, "--from", _UV_VALUES)
    elif name == "uv" and then[:2] == ["tool", "run"]:
        found = _python("uv tool run", words, at + 3, "--from", _UV_VALUES)
    elif name == "pipx" and first == "run":
        found = _python("pipx run", words, at + 2, "--spec", _PIPX_VALUES)
    elif name in _DOCKERS and first == "run":
        found = _image(f"{name} run", words, at + 2)
    elif name == "deno":
        found = _deno(words, at + 1)
    return () if found is None or is_reference(f"{found.name}{found.version}") else (found,)


_NPM_VERBS = (("npm", "exec"), ("npm", "x"), ("pnpm", "dlx"), ("yarn", "dlx"), ("bun", "x"))


def _npm(launcher: str, words: Sequence[str], at: int) -> Package | None:
    while at < len(words):
        word = words[at]
        if word in ("--no", "--no-install", "--offline"):
            return None  # it starts only what is installed
        if word in ("-p", "--package") and at + 1 < len(words):
            return _npm_spec(launcher, words[at + 1], at + 1)
        if word.startswith("--package="):
            return _npm_spec(launcher, word.removeprefix("--package="), at)
        if word in ("-c", "--call"):
            return None
        if word in _NPM_VALUES:
            at += 2
        elif word.startswith("-"):
            at += 1
        else:
            return _npm_spec(launcher, word, at)
    return None


def _npm_spec(launcher: str, spec: str, word: int) -> Package | None:
    if spec.startswith(_LOCAL) or re.match(r"https?://", spec):
        return None
    is_git = spec.startswith(("git", "github:", "gitlab:", "bitbucket:")) and ":" in spec
    if is_git or re.fullmatch(r"[\w.-]+/[\w.-]+(?:#.*)?", spec):
        name, _, revision = spec.partition("#")
        return Package(launcher, name, revision, bool(_REVISION.fullmatch(revision)), word)
    name, _, version = spec[1:].partition("@")
    return Package(launcher, spec[0] + name, version, bool(_NPM_EXACT.fullmatch(version)), word)


def _python(
    launcher: str, words: Sequence[str], at: int, source: str, values: tuple[str, ...]
) -> Package | None:
    while at < len(words):
        word = words[at]
        if word == source and at + 1 < len(words):
            return _python_spec(launcher, words[at + 1], at + 1)
        if word.startswith(f"{source}="):
            return _python_spec(launcher, word.removeprefix(f"{source}="), at)
        if word in values:
            at += 2
        elif word.startswith("-"):
            at += 1
        else:
            return _python_spec(launcher, word, at)
    return None


def _python_spec(launcher: str, spec: str, word: int) -> Package | None:
    if spec == "." or spec.startswith(_LOCAL) or re.search(r"\.(?:whl|tar\.gz|zip)$", spec):
        return None
    name, sign, source = spec.partition(" @ ")
    git = source if sign else spec
    if git.startswith("git+"):
        address, _, revision = git.partition("#")[0].rpartition("@")
        has_revision = "://" in address
        pinned = has_revision and bool(_REVISION.fullmatch(revision))
        name = address if has_revision else git
        return Package(launcher, name, revision if has_revision else "", pinned, word)
    found = re.fullmatch(r"([A-Za-z0-9._-]+(?:\[[^\]]*\])?)\s*(@|[=<>!~]=?=?)?\s*(.*)", spec)
    if found is None:
        return None
    exact = found[2] in ("@", "==", "===") and _PYTHON_EXACT.fullmatch(found[3])
    return Package(launcher, found[1], found[3], bool(exact), word)


def _image(launcher: str, words: Sequence[str], at: int) -> Package | None:
    while at < len(words):
        word = words[at]
        if word == "--pull=never" or words[at : at + 2] == ["--pull", "never"]:
            return None
        if not word.startswith("-"):
            return _image_spec(launcher, word, at)
        at += 1 if _DOCKER_FLAGS.fullmatch(word) else 2
    return None


def _image_spec(launcher: str, image: str, word: int) -> Package:
    name, _, digest = image.partition("@")
    if digest:
        return Package(launcher, name, digest, digest.startswith("sha256:"), word)
    path, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:  # the colon is a registry's port
        return Package(launcher, name, "", False, word)
    return Package(launcher, path, tag, bool(_IMAGE_EXACT.fullmatch(tag)), word)


def _deno(words: Sequence[str], at: int) -> Package | None:
    for number, word in enumerate(words[at:], at):
        found = re.fullmatch(r"(npm|jsr):(@?[^@]+)(?:@(.*))?", word)
        if found:
            version = (found[3] or "").partition("/")[0]
            return Package(
                "deno run", found[2], version, bool(_NPM_EXACT.fullmatch(version)), number
            )
    return None
