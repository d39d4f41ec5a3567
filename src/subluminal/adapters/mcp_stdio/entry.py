"""Runs `sub shim stdio --server NAME [--policy FILE] [--home DIR] -- CMD…`.

The order of steps makes the start fast (fast-start): the warden is forked before anything is
loaded, the server is started as soon as its secrets are known, and the rest is loaded while the
server starts.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subluminal.adapters.mcp_stdio.assembly import OpenHost

USAGE = "usage: sub shim stdio --server NAME [--policy FILE] [--home DIR] -- COMMAND [ARG…]"
_HELP = f"""{USAGE}

Runs an MCP server on stdio, and decides and records each of its tool calls.

  --server NAME  the server's name, as in the client's configuration
  --policy FILE  in place of the repository's policy (also: SUB_POLICY)
  --home DIR     in place of SUB_HOME, for clients that clear the environment

Returns the server's own exit code; 128+N where signal N ended it or the shim, 127 or 126 if the
server cannot be started, 2 for a wrong command line.

example:
  sub shim stdio --server git -- mcp-server-git --repository .
"""
_OPTIONS = ("--server", "--policy", "--home")


class Options:
    """The command line, parsed without argparse, which would double the time of this step."""

    def __init__(self, words: list[str]) -> None:
        self.values: dict[str, str] = {}
        self.command: list[str] = []
        self.problem = ""
        self._parse(words)

    def _parse(self, words: list[str]) -> None:
        if not words or words[0] != "stdio":
            named = f"cannot read `{words[0]}`: " if words else ""
            self.problem = f"{named}the only transport is `stdio`"
            return
        rest = words[1:]
        while rest:
            word = rest.pop(0)
            if word == "--":
                self.command = rest
                break
            name, equals, value = word.partition("=")
            if name not in _OPTIONS:
                self.problem = f"cannot read `{word}`"
                return
            if not equals and rest[:1] in ([], ["--"]):
                self.problem = f"`{name}` has no value"
                return
            self.values[name] = value if equals else rest.pop(0)
        if not self.values.get("--server"):
            self.problem = "`--server NAME` is missing"
        elif self.values["--server"].startswith("@"):
            self.problem = "names that begin with `@` are Subluminal's own; rename the server"
        elif not self.command:
            self.problem = "the server's command is missing after `--`"


def run(words: list[str], open_host: "OpenHost") -> int:
    """Runs a shim and returns its exit code.

    `open_host` calls `wiring.open_host`, and loads it first.
    """
    if any(word in ("-h", "--help") for word in words[:2]):
        sys.stdout.write(_HELP)
        return 0
    options = Options(words)
    if options.problem:
        sys.stderr.write(f"error: {options.problem}\nhint: {USAGE}\n")
        return 2
    from subluminal.supervise import WardenHandle, become_subreaper
    from subluminal.supervise.signals import posix
    from subluminal.system.adoption import signal_at_parents_death

    if posix.getsignal(posix.SIGINT) is posix.default_int_handler:
        # Until the loop handles signals, SIGINT ends the process without a traceback; the warden
        # notices that.
        posix.signal(posix.SIGINT, posix.SIG_DFL)
    become_subreaper()
    # If the server has stopped the shim, the client's death lets it go on, and end.
    signal_at_parents_death(posix.SIGCONT)
    warden = WardenHandle.fork()
    from subluminal.adapters.mcp_stdio.starting import start

    return start(warden, options.values, options.command, open_host)
