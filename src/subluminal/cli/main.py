"""Entry point. `sub shim` and `sub hook` leave here before any parser is loaded (fast-start)."""

import sys


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["shim"]:
        from subluminal.adapters.mcp_stdio.entry import run

        return run(words[1:])
    from subluminal.cli.frame import run_command

    return run_command(words)
