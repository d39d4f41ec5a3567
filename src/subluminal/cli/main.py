"""The entry point. `sub shim` and `sub hook` leave here before a parser is loaded (fast-start)."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from subluminal.core.host import Host


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["shim"]:
        from subluminal.adapters.mcp_stdio.entry import run

        return run(words[1:], open_host)
    if words[:1] == ["hook"]:
        from subluminal.adapters.agent_hooks.entry import Tools
        from subluminal.adapters.agent_hooks.entry import run as run_hook

        return run_hook(words[1:], Tools(open_host, configured_servers))
    from subluminal.cli.frame import run_command

    return run_command(words)


def open_host(*args: "Any", **options: "Any") -> "Host":
    """Calls `wiring.open_host`, and loads it first: a shim starts its server before that."""
    from subluminal.wiring import open_host as opener

    return opener(*args, **options)


def configured_servers(client: str, cwd: str) -> dict[str, bool]:
    """Returns the servers in a client's configuration, and whether a shim serves each of them."""
    import os

    from subluminal.importer.expected import configured

    return configured(client, os.environ, cwd)
