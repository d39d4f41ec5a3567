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
    "run": _command("run an agent as one run", "run"),
    "tail": _command("live events", "tail"),
    "query": _command("search calls, runs, hints, approvals and tools", "query"),
    "show": _command("one call or run, whole", "show"),
    "approvals": _command("what waits for a person", "approvals"),
    "approve": _command("let a call pass that waits for a person", "approve"),
    "deny": _command("say no to a call that waits for a person", "deny"),
    "kill": _command("stop a run, an agent, a tool or everything", "kill"),
    "revive": _command("lift what `sub kill` stopped", "revive"),
    "hints": _command("hints given, and whether they helped", "hints"),
    "promote": _command("turn a hint into a grant or a reviewed policy change", "promote"),
    "passphrase": _command("ask for one before a person's commands", "passphrase"),
    "demo": _command("the whole loop in a minute", "demo"),
    "doctor": _command("whether everything here would work", "doctor"),
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
            "replay": _command("what recorded runs would have met", "policy_replay"),
            "accept": _command(
                "let a loosened repository policy hold for the runs under way", "policy_accept"
            ),
        },
    ),
    "secrets": Group(
        "values that servers get and agents never see",
        {
            "add": _command("store a value, from a prompt or stdin", "secrets_add"),
            "get": _command("what is known of a secret; --reveal asks first", "secrets_get"),
            "list": _command("every secret, who uses it, when it last worked", "secrets_list"),
            "remove": _command("delete a value", "secrets_remove"),
            "rename": _command("another name for the same value", "secrets_rename"),
            "check": _command("resolve all bindings, print no value", "secrets_check"),
            "scan": _command("look for secrets in what was recorded", "secrets_scan"),
        },
    ),
    "import": _command("route a client's MCP servers through shims", "import_"),
    "restore": _command("undo an import", "restore"),
    "shim": Group(
        "the data plane in front of one MCP server",
        {"stdio": _command("run a stdio MCP server, its calls decided and recorded", "shim_stdio")},
    ),
    "completion": _command("print a shell's completion script", "completion"),
    "__complete": _command("candidates for the shell", "complete", hidden=True),
    "ledgerd": _command("the local daemon that owns the ledger", "ledgerd"),
    "ledger": Group(
        "the ledger itself", {"verify": _command("prove the hash chain", "ledger_verify")}
    ),
    "ingest": _command("take JSONL events from elsewhere", "ingest"),
    "export": Group(
        "take runs elsewhere",
        {
            "run": _command("one run, as an artifact or a part of it", "export_run"),
            "diff": _command("what two artifacts differ in, but for ids and times", "export_diff"),
        },
    ),
}
