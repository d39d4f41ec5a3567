"""Every command of `sub`, by name. A command's module is imported only when it is called.

A module under `commands/` has `EXAMPLE`, `add_arguments(parser)` and `run(args, out) -> int`.
"""

from typing import NamedTuple


class Command(NamedTuple):
    """A verb, and the module that does it."""

    summary: str
    module: str
    hidden: bool = False


class Group(NamedTuple):
    """A noun with verbs of its own."""

    summary: str
    commands: dict[str, Command]


def _command(summary: str, module: str, *, hidden: bool = False) -> Command:
    return Command(summary, f"subluminal.cli.commands.{module}", hidden)


COMMANDS: dict[str, Command | Group] = {
    "version": _command("what runs here", "version"),
    "canonical": _command("JSON on stdin to canonical bytes, or their SHA-256", "canonical"),
    "policy": Group(
        "write, check, test and compare policies",
        {
            "lint": _command("problems with line numbers", "policy_lint"),
            "compile": _command("the snapshot as JSON, with policy_hash", "policy_compile"),
            "explain": _command("one decision with its steps", "policy_explain"),
            "test": _command("run golden cases", "policy_test"),
            "diff": _command("what changed, with severity", "policy_diff"),
        },
    ),
    "completion": _command("print a shell's completion script", "completion"),
    "__complete": _command("candidates for the shell", "complete", hidden=True),
}
