"""What a client needs on its command line to be one run of its own (reference: clients, fact 5)."""

import os

NO_DAEMON = "--no-daemon"

# Subcommands of Codex that start no background daemon, or are not an agent at all.
_PLAIN_CODEX = (
    *("exec", "e", "review", "login", "logout", "mcp", "mcp-server", "app-server", "completion"),
    *("sandbox", "debug", "apply", "a", "cloud", "features", "help", "update"),
)


def adjusted(command: list[str]) -> tuple[list[str], str | None]:
    """Returns the command to start, and what was changed about it and why.

    Interactive Codex keeps its MCP servers in a daemon that outlives it and serves other runs too:
    they would carry the run of whoever came first.
    """
    if os.path.basename(command[0]) != "codex" or NO_DAEMON in command[1:]:
        return command, None
    first = next((word for word in command[1:] if not word.startswith("-")), "")
    if first in _PLAIN_CODEX or {"-h", "--help", "-V", "--version"} & set(command[1:]):
        return command, None
    told = f"added `{NO_DAEMON}`: a shared Codex daemon would mix this run with others"
    return [command[0], NO_DAEMON, *command[1:]], told
