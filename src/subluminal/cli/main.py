"""Entry point. `sub shim` and `sub hook` leave here before any parser is loaded (D16)."""

import sys


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    words = sys.argv[1:] if argv is None else argv
    from subluminal.cli.frame import run_command

    return run_command(words)
