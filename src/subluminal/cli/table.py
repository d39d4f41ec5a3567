"""Every command of `sub` by name. A command's module is imported only when the command runs.

A module under `commands/` has `EXAMPLE`, `add_arguments(parser)` and `run(args, out) -> int`.
"""

from typing import NamedTuple


class Command(NamedTuple):
    """A verb and the module that runs it."""

    summary: str
    module: str
    hidden: bool = False
    needs_home: bool = True
    """whether the command refuses a SUB_HOME that other users can write to"""


class Group(NamedTuple):
    """A noun with verbs of its own."""

    summary: str
    commands: dict[str, Command]


_HOMELESS = frozenset(
    (
        *("version", "canonical", "completion", "complete", "demo", "export_diff"),
        *("policy_lint", "policy_compile", "policy_explain", "policy_test", "policy_diff"),
        *("pack_list", "pack_show", "pack_check", "pack_test"),
        *("doctor", "kill"),
    )
)
"""Commands that do not use SUB_HOME, and two that must work even if it cannot be trusted: one
reports that, the other stops an agent."""


def _command(summary: str, module: str, *, hidden: bool = False) -> Command:
    name = f"subluminal.cli.commands.{module}"
    return Command(summary, name, hidden, needs_home=module not in _HOMELESS)


COMMANDS: dict[str, Command | Group] = {
    "run": _command("run an agent and record it as one run", "run"),
    "tail": _command("show live events", "tail"),
    "query": _command("search calls, runs, hints, intents, approvals and tools", "query"),
    "show": _command("show one call or run in full", "show"),
    "approvals": _command("list calls waiting for approval", "approvals"),
    "approve": _command("approve a waiting call", "approve"),
    "deny": _command("deny a waiting call", "deny"),
    "kill": _command("stop a run, an agent, a tool or everything", "kill"),
    "revive": _command("lift a stop, or let a run that lost its state go on", "revive"),
    "taint": Group(
        "show or set how far a run's text is trusted",
        {
            "show": _command("show the level of a run, and why", "taint_show"),
            "set": _command("set the level of a run", "taint_set"),
        },
    ),
    "intent": Group(
        "work with intents that the kernel decided",
        {
            "release": _command(
                "let an intent execute again whose outcome is unknown", "intent_release"
            )
        },
    ),
    "agents": Group(
        "register agents, and say how far each is trusted",
        {
            "register": _command(
                "register an agent, or change its registration", "agents_register"
            ),
            "list": _command("list registered agents", "agents_list"),
            "show": _command("show an agent and how far it is trusted, and why", "agents_show"),
            "attest": _command("print a token that proves an agent to this home", "agents_attest"),
            "verify": _command("check whether a token proves an agent", "agents_verify"),
            "revoke": _command("refuse every call of an agent, for good", "agents_revoke"),
        },
    ),
    "hints": _command("list hints and whether they helped", "hints"),
    "promote": _command("turn a hint into a grant or a reviewed policy change", "promote"),
    "passphrase": _command("protect commands that only a person may run", "passphrase"),
    "demo": _command("show everything at work in one minute", "demo"),
    "doctor": _command("check that everything here works", "doctor"),
    "version": _command("show the versions of sub, the Interface Pack and Python", "version"),
    "canonical": _command("turn JSON on stdin into canonical bytes or their SHA-256", "canonical"),
    "policy": Group(
        "write, check, test and compare policies",
        {
            "init": _command("write a first policy from the recorded tools", "policy_init"),
            "lint": _command("report problems with line numbers", "policy_lint"),
            "compile": _command("print the compiled policy with its policy_hash", "policy_compile"),
            "sign": _command("sign a bundle of Agent-SPM with a key", "policy_sign"),
            "explain": _command("explain one decision step by step", "policy_explain"),
            "test": _command("run golden cases", "policy_test"),
            "diff": _command("report what changed, with severity", "policy_diff"),
            "replay": _command("replay recorded runs under another policy", "policy_replay"),
            "accept": _command(
                "put a loosened repository policy into force for runs under way", "policy_accept"
            ),
        },
    ),
    "pack": Group(
        "list, check, test and replay packs",
        {
            "list": _command("list installed packs", "pack_list"),
            "show": _command("show what a pack declares", "pack_show"),
            "check": _command("check the shape of a pack and what it does", "pack_check"),
            "test": _command("run scenarios", "pack_test"),
            "replay": _command("ask a pack again about what is on record", "pack_replay"),
        },
    ),
    "secrets": Group(
        "manage values that servers get and agents never see",
        {
            "add": _command("store a value from a prompt or stdin", "secrets_add"),
            "get": _command("show what is known of a secret, or its value", "secrets_get"),
            "list": _command(
                "list secrets, their servers and when they last worked", "secrets_list"
            ),
            "remove": _command("delete a value", "secrets_remove"),
            "rename": _command("give a value another name", "secrets_rename"),
            "approve": _command(
                "approve the command that gets a server's stored secrets", "secrets_approve"
            ),
            "check": _command("resolve all bindings without printing a value", "secrets_check"),
            "scan": _command("search what was recorded for secrets", "secrets_scan"),
        },
    ),
    "import": _command("route a client's MCP servers through shims", "import_"),
    "restore": _command("undo an import", "restore"),
    "scan": _command("report risky MCP servers, settings and tool definitions", "scan"),
    "hook": _command("decide and record one tool call of an agent's own tools", "hook"),
    "shim": Group(
        "run the data plane in front of one MCP server",
        {
            "stdio": _command(
                "run a stdio MCP server, and decide and record its calls", "shim_stdio"
            )
        },
    ),
    "completion": _command("print a completion script for a shell", "completion"),
    "__complete": _command("print candidates for a shell", "complete", hidden=True),
    "ledgerd": _command("run or control the local daemon that owns the ledger", "ledgerd"),
    "ledger": Group(
        "work with the ledger itself",
        {
            "verify": _command("prove the hash chain", "ledger_verify"),
            "anchor": _command("print or record a signed head of the ledger", "ledger_anchor"),
            "rebuild": _command("rebuild all derived data from the events", "ledger_rebuild"),
        },
    ),
    "ingest": _command("store JSONL events from elsewhere", "ingest"),
    "export": Group(
        "export runs and compare exports",
        {
            "run": _command("export one run as an artifact or a part of one", "export_run"),
            "diff": _command("compare two artifacts, ignoring ids and times", "export_diff"),
        },
    ),
}
