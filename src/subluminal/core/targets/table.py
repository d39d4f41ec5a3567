"""Which arguments of which tools are commands, paths, URLs or patches.

The tables of the clients' own tools come first. Settings add to them: `[servers.NAME.targets]`.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from subluminal.config.settings import Settings, TargetSettings

Kind = Literal["command", "path", "url", "patch", "text", "pattern"]
"""`text` is prose in which URLs are looked for; `pattern` is a glob that a tool resolves."""


class Argument(NamedTuple):
    """One argument of a tool."""

    names: tuple[str, ...]
    """the argument's name; several if versions of the client name it differently"""
    kind: Kind
    access: tuple[Literal["read", "write"], ...] = ()
    """what the tool does with the path"""
    optional: bool = False
    """whether a call without it acts on the working directory (a path), or on nothing"""


class Tool(NamedTuple):
    """The arguments of one tool that name targets."""

    arguments: tuple[Argument, ...] = ()
    cwd: tuple[str, ...] = ()
    """arguments that name the working directory"""
    unreadable: str = ""
    """why calls of this tool are always opaque"""


Table = Mapping[str, Mapping[str, Tool]]
"""server_name to tool_name to the tool's arguments"""


def _command(*names: str, cwd: tuple[str, ...] = ()) -> Tool:
    return Tool((Argument(names, "command"),), cwd)


def _read(*names: str, optional: bool = False) -> Tool:
    return Tool((Argument(names, "path", ("read",), optional),))


def _write(*names: str) -> Tool:
    return Tool((Argument(names, "path", ("read", "write")),))


def _url(*names: str) -> Tool:
    return Tool((Argument(names, "url"),))


def _patch(*names: str) -> Tool:
    return Tool((Argument(names, "patch"),))


def _glob(*names: str) -> Tool:
    place = Argument(names, "path", ("read",), optional=True)
    return Tool((place, Argument(("pattern",), "pattern", (), optional=True)))


_TYPED = Tool(unreadable="text is typed into a program that runs already")

CLIENT_TOOLS: dict[str, dict[str, Tool]] = {
    "@claude": {
        "Bash": _command("command"),
        "Monitor": _command("command"),
        "PowerShell": Tool(unreadable="PowerShell is not read"),
        "Read": _read("file_path"),
        "Edit": _write("file_path"),
        "MultiEdit": _write("file_path"),
        "Write": _write("file_path"),
        "NotebookRead": _read("notebook_path"),
        "NotebookEdit": _write("notebook_path"),
        "Glob": _glob("path"),
        "Grep": _read("path", optional=True),
        "LS": _read("path"),
        "WebFetch": _url("url"),
    },
    "@codex": {
        "Bash": _command("command", "cmd", cwd=("workdir",)),
        "shell": _command("command", "cmd", cwd=("workdir",)),
        "shell_command": _command("command", "cmd", cwd=("workdir",)),
        "local_shell": _command("command", "cmd", cwd=("workdir", "working_directory")),
        "container.exec": _command("command", "cmd", cwd=("workdir",)),
        "exec_command": _command("cmd", "command", cwd=("workdir",)),
        "unified_exec": _command("cmd", "command", "input", cwd=("workdir",)),
        "write_stdin": _TYPED,
        "apply_patch": _patch("command", "input", "patch"),
        "view_image": _read("path"),
        "read_file": _read("file_path", "path"),
        "list_dir": _read("dir_path", "path"),
        "grep_files": _read("path", optional=True),
    },
    "@gemini": {
        "run_shell_command": _command("command", cwd=("dir_path", "directory")),
        "read_file": _read("file_path", "absolute_path", "path"),
        "read_many_files": _read("paths", "include"),
        "write_file": _write("file_path", "absolute_path"),
        "replace": _write("file_path", "absolute_path"),
        "edit": _write("file_path", "absolute_path"),
        "list_directory": _read("dir_path", "path"),
        "glob": _glob("dir_path", "path"),
        "search_file_content": _read("dir_path", "path", optional=True),
        "grep_search": _read("dir_path", "path", optional=True),
        "web_fetch": Tool(
            (Argument(("url",), "url", (), True), Argument(("prompt",), "text", (), True))
        ),
    },
    "@copilot": {
        "bash": _command("command"),
        "read_bash": Tool(),
        "write_bash": _TYPED,
        "powershell": Tool(unreadable="PowerShell is not read"),
        "view": _read("path"),
        "create": _write("path"),
        "edit": _write("path"),
        "str_replace": _write("path"),
        "str_replace_editor": _write("path"),
        "apply_patch": _patch("patch", "input"),
        "glob": _glob("path"),
        "grep": _read("path", optional=True),
        "rg": _read("path", optional=True),
        "fetch": _url("url"),
        "web_fetch": _url("url"),
    },
    "@opencode": {
        "bash": _command("command", cwd=("workdir",)),
        "read": _read("filePath"),
        "write": _write("filePath"),
        "edit": _write("filePath"),
        "multiedit": _write("filePath"),
        "patch": _patch("patchText", "patch"),
        "apply_patch": _patch("patchText", "patch"),
        "glob": _glob("path"),
        "grep": _read("path", optional=True),
        "list": _read("path", optional=True),
        "webfetch": _url("url"),
    },
}
"""The clients' own tools, by the server name that stands for the client (one-matcher-per-idea)."""


def table_for(settings: Settings) -> Table:
    """Returns the clients' tools with what the settings add."""
    added = {name: server.targets for name, server in settings.servers.items() if server.targets}
    if not added:
        return CLIENT_TOOLS
    table: dict[str, Mapping[str, Tool]] = dict(CLIENT_TOOLS)
    for server, tools in added.items():
        own = {tool: tool_of(each) for tool, each in tools.items()}
        table[server] = {**table.get(server, {}), **own}
    return table


def tool_of(given: TargetSettings) -> Tool:
    """Returns a tool as settings describe it."""
    access: tuple[Literal["read", "write"], ...] = ("read", "write")
    if given.access is not None:
        access = (given.access,)
    named: tuple[tuple[Kind, str | None], ...] = (
        ("command", given.command),
        ("path", given.path),
        ("url", given.url),
        ("patch", given.patch),
    )
    return Tool(tuple(Argument((name,), kind, access) for kind, name in named if name is not None))
