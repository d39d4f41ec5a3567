"""`sub shim stdio --server NAME [--policy FILE] [--home DIR] -- CMD…`: from nothing to the loop.

The order is the point (D16): the guard is forked before anything is loaded, the server is started
as soon as its secrets are known, and the rest is loaded while it boots.
"""

import sys

USAGE = "usage: sub shim stdio --server NAME [--policy FILE] [--home DIR] -- COMMAND [ARG…]"
_OPTIONS = ("--server", "--policy", "--home")


class Options:
    """What the command line says. Not argparse: it would cost as much as the rest."""

    def __init__(self, words: list[str]) -> None:
        self.values: dict[str, str] = {}
        self.command: list[str] = []
        self.problem = ""
        self._parse(words)

    def _parse(self, words: list[str]) -> None:
        if not words or words[0] != "stdio":
            self.problem = "the only transport is `stdio`"
            return
        rest = words[1:]
        while rest:
            word = rest.pop(0)
            if word == "--":
                self.command = rest
                break
            name, equals, value = word.partition("=")
            if name not in _OPTIONS or (not equals and not rest):
                self.problem = f"cannot read `{word}`"
                return
            self.values[name] = value if equals else rest.pop(0)
        if not self.values.get("--server"):
            self.problem = "`--server NAME` is missing"
        elif not self.command:
            self.problem = "the server's command is missing after `--`"


def run(words: list[str]) -> int:
    """Runs a shim and returns its exit code."""
    if words[:1] in (["-h"], ["--help"]) or words[1:2] in (["-h"], ["--help"]):
        sys.stdout.write(f"{USAGE}\n\nexample:\n  sub shim stdio --server git -- mcp-server-git\n")
        return 0
    options = Options(words)
    if options.problem:
        sys.stderr.write(f"error: {options.problem}\nhint: {USAGE}\n")
        return 2
    from subluminal.supervise import Guard, become_subreaper

    become_subreaper()
    guard = Guard.fork()
    from subluminal.adapters.mcp_stdio.assembly import start

    return start(guard, options.values, options.command)
