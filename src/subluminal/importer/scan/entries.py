"""Judges one entry of a client's configuration.

A switched-off entry starts nothing; only its secrets and the file's mode are reported.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from subluminal.importer.clients.description import Scope
from subluminal.importer.document import URL_KEYS, Document, Entry, EntryKind
from subluminal.importer.env_secrets import is_reference
from subluminal.importer.expected import says_off
from subluminal.importer.scan.approval import Settings, switches_in
from subluminal.importer.scan.broad_paths import broad_paths
from subluminal.importer.scan.exposure import Exposure
from subluminal.importer.scan.launching import Launch, Package, program_of, read_launch
from subluminal.importer.scan.lines import Lines
from subluminal.importer.scan.rules import Finding, Level, Rule
from subluminal.importer.scan.secrets import secrets_of
from subluminal.importer.text.tree import Node
from subluminal.importer.wrapper import recognise

_LOOPBACK = re.compile(r"127(?:\.\d+){3}|::1|0\.0\.0\.0|(?:.+\.)?localhost|host\.docker\.internal")
_PLAIN_SCHEMES = ("http", "ws")
_BRIDGES = ("mcp-remote", "mcp-proxy", "supergateway", "mcp-client-http")
"""Packages that turn a URL, given as an argument, into a stdio server."""
_VERSION = "X.Y.Z"


class Surroundings(NamedTuple):
    """What is known about an entry besides its own text."""

    scope: Scope | None
    user_home: str
    settings: Settings
    exposure: Exposure | None = None
    hooked: bool = False
    """whether hooks of ours see the client's calls"""
    has_hooks: bool = False
    """whether the client can have hooks"""
    overrides: tuple[str, ...] = ()
    """settings by which a project's file takes its server out of the user's home or policy"""


class EntryScan:
    """The rules about one entry."""

    def __init__(
        self, document: Document, entry: Entry, lines: Lines, around: Surroundings
    ) -> None:
        self._document = document
        self._entry = entry
        self._lines = lines
        self._around = around
        found = recognise(entry.argv)
        self._wrapped = found is not None
        self._nodes = entry.words[found.length if found else 0 :]
        self.words = [node.string or "" for node in self._nodes]
        """the server's own command line"""

    @property
    def line(self) -> int:
        """The line of the entry's name."""
        return self._lines.of(self._entry.start)

    @property
    def transport(self) -> str | None:
        """How the client reaches the server; None if the entry is not understood."""
        match self._entry.kind:
            case EntryKind.STDIO:
                return "stdio"
            case EntryKind.REMOTE:
                return self._entry.detail
            case EntryKind.BROKEN:
                return None

    def findings(self) -> Iterator[Finding]:
        """Yields what the rules find."""
        if not says_off(self._document.client, self._entry):
            launch = read_launch(self.words) if self.words else Launch()
            yield from self._versions(launch)
            yield from self._shell(launch)
            yield from self._urls()
            yield from self._unseen()
            yield from self._approval()
            yield from self._paths()
        yield from self._secrets()
        if self._around.exposure is not None:
            yield exposure_finding(self._around.exposure, self.line)

    def _found(
        self, rule: Rule, level: Level, message: str, hint: str, node: Node | None = None
    ) -> Finding:
        at = node.start if node is not None and node.start >= 0 else self._entry.start
        return Finding(rule, level, message, self._lines.of(at), hint)

    def _versions(self, launch: Launch) -> Iterator[Finding]:
        for each in launch.packages:
            if not each.pinned:
                told = f"`{each.version}`, which moves" if each.version else "the newest version"
                message = f"`{each.launcher}` starts {told} of `{each.name}`"
                if each.version:
                    message = f"`{each.launcher}` starts {each.name} at {told}"
                yield self._found(
                    Rule.UNPINNED_VERSION,
                    Level.MEDIUM,
                    message,
                    f"write the version: `{_pinned(each)}`",
                    self._nodes[each.word],
                )

    def _shell(self, launch: Launch) -> Iterator[Finding]:
        if launch.shell_text is None:
            return
        hint = "put the program into `command` and its arguments into `args`"
        if launch.downloads:
            told = "a shell downloads a program and runs it"
            yield self._found(Rule.SHELL_LAUNCHER, Level.HIGH, told, hint, self._nodes[0])
        else:
            told = "a shell runs a text, so what starts is hard to review"
            yield self._found(Rule.SHELL_LAUNCHER, Level.MEDIUM, told, hint, self._nodes[0])

    def _secrets(self) -> Iterator[Finding]:
        client = self._document.client
        stdio = self._entry.kind is EntryKind.STDIO
        hint = f"move it out: `sub import {client.name} --bind-secrets`, then rotate it"
        if not stdio:
            hint = "write a reference such as `${TOKEN}`, then rotate it"
        for each in secrets_of(client, self._entry, self._nodes):
            message = f"{each.place} holds a secret in plain text"
            own = hint if each.bindable else "write a reference such as `${TOKEN}`, then rotate it"
            yield self._found(Rule.SECRET_IN_CONFIG, Level.HIGH, message, own, each.node)

    def _urls(self) -> Iterator[Finding]:
        headers = [self._entry.node.get(key) for key in ("headers", "http_headers")]
        has_headers = any(node is not None and node.members for node in headers)
        nodes = [self._entry.node.get(key) for key in URL_KEYS]
        if program_of(self.words).rpartition("/")[2] in _BRIDGES:
            nodes += self._nodes
            has_headers = has_headers or "--header" in self.words
        for node in nodes:
            address = _split(node.string) if node is not None and node.string else None
            if address is None or address.scheme.lower() not in _PLAIN_SCHEMES:
                continue
            host = address.hostname or ""
            if host and not is_reference(address.netloc) and not _LOOPBACK.fullmatch(host):
                also = ", and its headers too" if has_headers else ""
                yield self._found(
                    Rule.PLAINTEXT_URL,
                    Level.HIGH if has_headers else Level.MEDIUM,
                    f"calls go to `{host}` unencrypted{also}",
                    f"use `{address.scheme.lower()}s://`",
                    node,
                )

    def _unseen(self) -> Iterator[Finding]:
        name, around = self._document.client.name, self._around
        path = "" if around.scope else f" --path {self._document.path}"
        again = f"`sub import {name}{path}`"
        rule = Rule.NOT_WRAPPED
        if around.overrides:
            told = ", ".join(f"`{each}`" for each in around.overrides)
            message = f"the project's file sets {told}, which takes the server out of your policy"
            yield self._found(rule, Level.MEDIUM, message, f"remove it with {again}")
        if self._wrapped:
            return
        if self._entry.kind is EntryKind.BROKEN:
            message = f"it cannot be wrapped: {self._entry.detail}"
            yield self._found(rule, Level.INFO, message, "fix the entry by hand")
        elif self._entry.kind is EntryKind.REMOTE:
            if not around.hooked:
                message = "it is reached by URL, and no hook sees its calls"
                level = Level.LOW if around.has_hooks else Level.INFO
                hint = f"add hooks with `sub import {name} --hooks`" if around.has_hooks else ""
                yield self._found(rule, level, message, hint)
        elif around.hooked:
            message = "only hooks see its calls; no shim is in front of it"
            yield self._found(rule, Level.INFO, message, f"wrap it with {again}")
        else:
            message = "its calls are neither decided nor recorded"
            yield self._found(rule, Level.LOW, message, f"wrap it with {again}")

    def _approval(self) -> Iterator[Finding]:
        in_project = self._around.scope is Scope.PROJECT
        beside = switches_in(self._document, self._entry)
        for each in (
            *beside,
            *self._around.settings.about(self._entry.server, in_project=in_project),
        ):
            where = f" in `{each.path}:{each.line}`" if each.path else ""
            yield self._found(
                Rule.AUTO_APPROVED,
                each.level,
                f"nobody is asked: `{each.setting.replace('`', '')}`{where}",
                "remove the switch, or approve single tools",
                None if each.path else each.node,
            )

    def _paths(self) -> Iterator[Finding]:
        for at, told in broad_paths(self._entry.server, self.words, self._around.user_home):
            yield self._found(
                Rule.BROAD_PATH,
                Level.HIGH,
                f"the server gets {told}",
                "give it the directories that it needs",
                self._nodes[at],
            )


def exposure_finding(exposure: Exposure, line: int) -> Finding:
    """Returns the finding about a file that others can write."""
    level = Level.HIGH if exposure.reachable else Level.LOW
    return Finding(Rule.WRITABLE_BY_OTHERS, level, exposure.message, line, exposure.hint)


def _split(text: str) -> SplitResult | None:
    try:
        return urlsplit(text)
    except ValueError:
        return None


def _pinned(package: Package) -> str:
    """Returns how to write a package with its version."""
    if package.launcher.endswith("run") and package.launcher.split()[0] not in (
        "pipx",
        "uv",
        "deno",
    ):
        return f"{package.name}@sha256:…"
    if package.launcher == "pipx run":
        return f"pipx run --spec {package.name}=={_VERSION} {package.name}"
    if package.name.startswith("git+"):
        return f"{package.name}@COMMIT"
    if package.launcher in ("uvx", "uv tool run") and "[" in package.name:
        return f"--from {package.name}=={_VERSION}"
    if re.search(r"[:/]", package.name) and not package.name.startswith("@"):
        return f"{package.name}#COMMIT"
    return f"{package.name}@{_VERSION}"
