"""Which servers a client starts, and which of them go through a shim into the same home as we.

`sub run` compares this with the shims that took part in the run. The files are read as `sub import`
reads them. What each client makes of them was observed with Claude Code 2.1 and Codex 0.166, and is
documented for the others. Servers of plugins, of accounts and of managed settings are not in these
files.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from subluminal.config import env
from subluminal.errors import SubluminalError
from subluminal.importer.clients.description import Client, ConfigFile, Scene, Scope
from subluminal.importer.clients.table import CLIENTS
from subluminal.importer.command_line import Options
from subluminal.importer.document import Document, Entry, EntryKind, env_of, parse
from subluminal.importer.files import read_config
from subluminal.importer.text.tree import Kind, Node
from subluminal.importer.wrapper import recognise
from subluminal.trust.identity.machine import read_text

MAX_SERVERS = 256
"""Most servers that are looked at. No client would work with more."""

_SWITCHES = {"codex": (("enabled", False),), "opencode": (("enabled", False), ("disabled", True))}
"""Keys that switch a server off, and the value that does. Claude Code has none in its entries."""
_SETTINGS = ("settings.json", "settings.local.json")


class Standing(Enum):
    """How the calls of a server would be recorded."""

    WRAPPED = "wrapped"
    UNWRAPPED = "unwrapped"
    REMOTE = "remote"
    """the client connects to a URL"""
    ELSEWHERE = "elsewhere"
    """wrapped, but its shim records in another home"""


class ExpectedServer(NamedTuple):
    """A server that the client is configured to start."""

    name: str
    """as its shim calls it, if it is wrapped"""
    standing: Standing
    home: str = ""
    """the other home that its shim records in"""

    @property
    def is_wrapped(self) -> bool:
        """Whether its calls are recorded in the home of the run."""
        return self.standing is Standing.WRAPPED

    @property
    def can_be_wrapped(self) -> bool:
        """Whether `sub import` would change that."""
        return self.standing in (Standing.UNWRAPPED, Standing.ELSEWHERE)

    @property
    def why(self) -> str:
        """Why no shim of this server was heard from."""
        match self.standing:
            case Standing.WRAPPED:
                return "wrapped, but its shim was never heard from"
            case Standing.UNWRAPPED:
                return "not wrapped"
            case Standing.REMOTE:
                return "reached by URL, which is not wrapped yet"
            case Standing.ELSEWHERE:
                return f"wrapped for another home, `{self.home}`"


class Expectation(NamedTuple):
    """The servers that a client starts, and the files that could not be read."""

    client: Client
    servers: tuple[ExpectedServer, ...]
    problems: tuple[str, ...]


def expected_servers(client: Client, scene: Scene, home: str, options: Options) -> Expectation:
    """Returns the servers that a client starts in a directory.

    `home` is the home of the run. Files that cannot be read become problems.
    """
    if options.cwd is not None:
        scene = scene._replace(cwd=os.path.join(scene.cwd, options.cwd))
    files = _Files(client, scene, options)
    if not options.starts_agent:
        return Expectation(client, (), ())
    started: dict[str, Entry] = {}
    switched_off: set[str] = set()
    for entry in _LAYERS.get(client.name, _layers)(files):
        is_off = says_off(client, entry)
        if is_off is not None:
            (switched_off.add if is_off else switched_off.discard)(entry.server)
        # An entry without a command or address only changes one of the same name.
        if entry.node.get("command") or entry.kind is EntryKind.REMOTE or is_off is None:
            started[entry.server] = entry
    found = [
        _standing(client, scene, entry, home)
        for name, entry in started.items()
        if name not in switched_off
    ]
    if len(found) > MAX_SERVERS:
        files.problems.append(f"{client.title} has more than {MAX_SERVERS} servers")
    return Expectation(client, tuple(found[:MAX_SERVERS]), tuple(files.problems))


Layers = Iterator[Entry]
"""Entries of all files. Of several entries of one name, the last counts."""


def configured(client: str, environ: Mapping[str, str], cwd: str) -> dict[str, bool]:
    """Returns the servers of a client in a directory, and whether each of them is behind a shim."""
    expected = expected_servers(CLIENTS[client], Scene(environ, cwd), "", Options())
    shims = (Standing.WRAPPED, Standing.ELSEWHERE)
    return {each.name: each.standing in shims for each in expected.servers}


class _Files:
    """The configurations that a client reads."""

    def __init__(self, client: Client, scene: Scene, options: Options) -> None:
        self.client = client
        self.scene = scene
        self.options = options
        self.problems: list[str] = []

    def named(self, scope: Scope) -> list[str]:
        """Returns the files of one scope, the nearest last."""
        if self.options.scopes is not None and scope.value not in self.options.scopes:
            return []
        files: list[ConfigFile] = self.client.files(self.scene)
        found = [file.path for file in files if file.scope is scope]
        return found[::-1] if scope is Scope.PROJECT else found

    def document(self, path: str) -> Document | None:
        """Parses a file; None if it does not exist or cannot be read."""
        return self.parsed(path) if os.path.exists(path) else None

    def parsed(self, path: str, text: str | None = None) -> Document | None:
        """Parses a text, or else the file; None if it cannot be read, which is a problem."""
        try:
            data = read_config(path).data if text is None else text.encode("utf-8", "replace")
            return parse(self.client, path, data)
        except SubluminalError as problem:
            self.problems.append(str(problem))
            return None

    def entries(self, paths: Iterable[str]) -> Layers:
        """Yields the entries of several files."""
        for path in paths:
            yield from _entries(self.document(path))

    def given(self) -> Layers:
        """Yields the entries that the command line names."""
        for path in self.options.files:
            # Unlike the others, a named file must exist.
            yield from _entries(self.parsed(os.path.join(self.scene.cwd, path)))
        for text in self.options.texts:
            yield from _entries(self.parsed("the command line", text))


def _entries(document: Document | None) -> list[Entry]:
    return [] if document is None else document.entries


def _root(document: Document | None) -> Node | None:
    return None if document is None else document.root


def _layers(files: _Files) -> Layers:
    """The user's files, then the project's, then those that the command line names."""
    yield from files.entries(files.named(Scope.USER))
    yield from files.entries(files.named(Scope.PROJECT))
    yield from files.given()


def _claude_layers(files: _Files) -> Layers:
    """User scope, `.mcp.json` from the root down, then the project's part of the user's file.

    Claude Code reads `.mcp.json` above the repository too. It files a project under the root of its
    repository, also for a worktree.
    """
    scopes, scene = files.options.scopes, files.scene
    reads = frozenset(("user", "project", "local")) if scopes is None else scopes
    own, where = files.client.files(scene)[0].path, _claude_project(scene)
    document = files.document(own) if reads else None
    entries = _entries(document)
    project = _at(_root(document), "projects", where)
    folders = scene.folders_above() if "project" in reads else []
    settings = list(_claude_settings(files, folders))
    off = {*_names(_at(project, "disabledMcpServers")), *_claude_denied(settings)}
    refused = [_at(each, "disabledMcpjsonServers") for each in (project, *settings)]
    off_in_project = off.union(*map(_names, refused))
    if "user" in reads:
        yield from (e for e in entries if e.path[0] != "projects" and e.server not in off)
    for entry in files.entries(os.path.join(folder, ".mcp.json") for folder in folders):
        if entry.server not in off_in_project:
            yield entry
    if "local" in reads:
        local = ("projects", where)
        yield from (e for e in entries if e.path[:2] == local and e.server not in off)
    yield from files.given()


def _claude_settings(files: _Files, folders: list[str]) -> Iterator[Node]:
    """Yields the settings in which a person may have refused servers."""
    config = files.scene.environ.get("CLAUDE_CONFIG_DIR") or files.scene.in_home(".claude")
    for place in (config, *(os.path.join(folder, ".claude") for folder in folders)):
        for name in _SETTINGS:
            try:
                text = read_config(os.path.join(place, name)).data.decode("utf-8-sig")
                yield files.client.notation.parse(text)
            except (SubluminalError, UnicodeDecodeError):
                continue  # without it, more servers are expected


def _claude_denied(settings: list[Node]) -> Iterator[str]:
    for root in settings:
        denied = _at(root, "deniedMcpServers")
        for each in denied.items if denied else ():
            yield from _names(_at(each, "serverName"))


def _claude_project(scene: Scene) -> str:
    """Returns the directory under which Claude Code files a project."""
    here = os.path.realpath(scene.cwd)
    for folder in reversed(scene._replace(cwd=here).folders_above()):
        marker = os.path.join(folder, ".git")
        if os.path.exists(marker):
            return _main_worktree(marker) or folder
    return here


def _main_worktree(marker: str) -> str | None:
    """Returns the repository that a worktree belongs to; None if it is not a worktree."""
    pointer = read_text(marker) if os.path.isfile(marker) else None
    if pointer is None or not pointer.startswith("gitdir:"):
        return None
    folder = os.path.join(os.path.dirname(marker), pointer.removeprefix("gitdir:").strip())
    common = read_text(os.path.join(folder, "commondir"))
    return (
        None if common is None else os.path.dirname(os.path.realpath(os.path.join(folder, common)))
    )


def _codex_layers(files: _Files) -> Layers:
    """The user's file, the profile that was asked for, trusted projects, then `-c`."""
    wanted = f"{files.options.profile}.config.toml"
    for path in files.named(Scope.USER):
        if os.path.basename(path) in ("config.toml", wanted):
            yield from files.entries([path])
    yield from files.entries(files.named(Scope.PROJECT))
    yield from files.given()


def _gemini_layers(files: _Files) -> Layers:
    """Only the servers in `mcp.allowed`, if there is such a list, and none in `mcp.excluded`."""
    paths = (*files.named(Scope.USER), *files.named(Scope.PROJECT))
    documents = [files.document(path) for path in paths]
    allowed: list[str] | None = None
    excluded: set[str] = set()
    for document in documents:
        listed = _at(_root(document), "mcp", "allowed")
        allowed = allowed if listed is None else _names(listed)
        excluded.update(_names(_at(_root(document), "mcp", "excluded")))
    for entry in (entry for document in documents for entry in _entries(document)):
        if entry.server not in excluded and (allowed is None or entry.server in allowed):
            yield entry


_LAYERS = {"claude": _claude_layers, "codex": _codex_layers, "gemini": _gemini_layers}


def _at(node: Node | None, *names: str) -> Node | None:
    for name in names:
        node = node.get(name) if node is not None and node.kind is Kind.TABLE else None
    return node


def _names(node: Node | None) -> list[str]:
    """Returns the strings of a list, or the one string that is there."""
    if node is None:
        return []
    return [each.string for each in (node.items or [node]) if each.string is not None]


def says_off(client: Client, entry: Entry) -> bool | None:
    """Returns whether an entry switches its server off; None if it does not say."""
    for key, off in _SWITCHES.get(client.name, ()):
        node = entry.node.get(key) if entry.node.kind is Kind.TABLE else None
        if node is not None and isinstance(node.scalar, bool):
            return node.scalar is off
    return None


def _standing(client: Client, scene: Scene, entry: Entry, home: str) -> ExpectedServer:
    if entry.kind is EntryKind.REMOTE:
        return ExpectedServer(entry.server, Standing.REMOTE)
    found = recognise(entry.argv)
    if found is None:
        return ExpectedServer(entry.server, Standing.UNWRAPPED)
    server = found.wrapper.server
    other = found.wrapper.home or _home_of(client, scene, entry)
    # A variable in the path is the client's to expand, so the path cannot be compared.
    if "$" in other or os.path.realpath(os.path.expanduser(other)) == os.path.realpath(home):
        return ExpectedServer(server, Standing.WRAPPED)
    return ExpectedServer(server, Standing.ELSEWHERE, other)


def _home_of(client: Client, scene: Scene, entry: Entry) -> str:
    """Returns the home of a shim that has no `--home`: by SUB_HOME, else the default."""
    name = env.SUB_HOME.name
    variables = env_of(entry, client)
    given = variables.get(name) if variables else None
    if given is not None and given.string:
        return given.string
    inherited: Mapping[str, str] = scene.environ
    key = client.shape.env_vars_key
    if key and name not in _names(entry.node.get(key)):
        inherited = {}  # the client clears the environment
    return inherited.get(name) or os.path.join(scene.user_home, ".subluminal")
