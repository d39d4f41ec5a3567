"""Runs `sub hook CLIENT [EVENT] [--policy FILE] [--home DIR] [--on-error auto|block|allow]`."""

import os
import sys

from subluminal.config import env

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from subluminal.core.host import Host

CLIENTS = ("claude", "codex", "gemini", "copilot", "opencode")
ON_ERROR = ("auto", "block", "allow")
USAGE = "usage: sub hook CLIENT [EVENT] [--policy FILE] [--home DIR] [--on-error auto|block|allow]"
_HELP = f"""{USAGE}

Decides and records one tool call of an agent. The agent's client runs this as its hook, with the
event as JSON on stdin; `sub import CLIENT` sets that up. It prints nothing if the call is allowed.

  CLIENT         {", ".join(CLIENTS)}
  EVENT          the event's name, for clients whose JSON does not contain it
  --policy FILE  in place of the repository's policy (also: SUB_POLICY)
  --home DIR     in place of SUB_HOME
  --on-error X   what happens to a call that cannot be decided: `block`, `allow`, or `auto`, which
                 blocks it if there is a policy (default)

Returns 0, or the exit code with which the client refuses a call; 2 for a wrong command line.

example:
  sub hook claude < event.json
"""
_OPTIONS = ("--policy", "--home", "--on-error")


class Tools:
    """What a hook shim needs and a door may not import, so it is handed in. Loaded when called."""

    def __init__(
        self,
        open_host: "Callable[..., Host]",
        configured_servers: "Callable[[str, str], Mapping[str, bool]]",
    ) -> None:
        self.open_host = open_host
        """`wiring.open_host`"""
        self.configured_servers = configured_servers
        """returns the servers in a client's configuration, for a directory, and whether each of
        them is behind a shim"""


class Options:
    """The command line, parsed without argparse: every event of an agent comes here."""

    def __init__(self, words: list[str]) -> None:
        self.values: dict[str, str] = {}
        self.client = ""
        self.event = ""
        self.problem = ""
        self._parse(words)

    def _parse(self, words: list[str]) -> None:
        named: list[str] = []
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if not word.startswith("-"):
                named.append(word)
                continue
            name, equals, value = word.partition("=")
            if name not in _OPTIONS:
                self.problem = f"cannot read `{word}`"
                return
            if not equals and not rest:
                self.problem = f"`{name}` has no value"
                return
            self.values[name] = value if equals else rest.pop(0)
        self._name(named)

    def _name(self, named: list[str]) -> None:
        if not named:
            self.problem = "the client is missing"
        elif named[0] not in CLIENTS:
            self.problem = f"`{named[0]}` is not a client with hooks: {', '.join(CLIENTS)}"
        elif len(named) > 2:
            self.problem = f"cannot read `{named[2]}`"
        elif self.on_error not in ON_ERROR:
            self.problem = f"`--on-error` is one of {', '.join(ON_ERROR)}"
        else:
            self.client, self.event = named[0], named[1] if len(named) == 2 else ""

    @property
    def on_error(self) -> str:
        """What happens to a call that cannot be decided."""
        return self.values.get("--on-error", "auto")

    @property
    def policy(self) -> str | None:
        """The policy file that the command line or the environment names."""
        return self.values.get("--policy") or os.environ.get(env.SUB_POLICY.name)


def run(words: list[str], tools: Tools) -> int:
    """Handles one event of a client and returns the exit code."""
    if any(word in ("-h", "--help") for word in words):
        sys.stdout.write(_HELP)
        return 0
    options = Options(words)
    if options.problem:
        # Clients take exit code 2 for a refusal: a hook that cannot be read allows nothing.
        sys.stderr.write(f"error: {options.problem}\nhint: {USAGE}\n")
        return 2
    from subluminal.adapters.agent_hooks.front import handle

    return handle(options, tools)
