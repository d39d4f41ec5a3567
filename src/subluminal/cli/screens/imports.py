"""What `sub import` prints. Command lines and diffs are redacted first (unprintable-secrets)."""

import difflib
import os
import shlex
from typing import Any

from subluminal.cli.output import Output, shown
from subluminal.core.records.redaction.redactor import Redactor
from subluminal.counts import counted
from subluminal.importer.approving import also_decides, left_out
from subluminal.importer.binding import Binder
from subluminal.importer.clients.description import Scene, Scope
from subluminal.importer.drift import Finding
from subluminal.importer.importing import Done
from subluminal.importer.proposal import Action, HookRow, Proposal, Row
from subluminal.secrets.value import SecretValue

_WORDS = {
    Action.WRAP: ("wrap", "green"),
    Action.REFRESH: ("refresh", "green"),
    Action.KEEP: ("wrapped", "dim"),
    Action.REMOTE: ("not yet", "yellow"),
    Action.REFUSE: ("refused", "red"),
}
_HOOK_WORDS = {**_WORDS, Action.WRAP: ("add", "green"), Action.KEEP: ("added", "dim")}
_MAX_DETAIL_CHARS = 60


def print_rows(
    plans: list[Proposal], out: Output, *, as_json: bool = False, done: list[Done] | None = None
) -> None:
    """Prints every server and what the import does with it."""
    redactor = _redactor(plans)
    changed = {finished.proposal.path for finished in done or ()}
    for plan in plans:
        if as_json:
            for row in plan.rows:
                out.json(_json_row(plan, row, redactor, changed))
            if plan.hooks:
                out.json(_json_hooks(plan, plan.hooks, changed))
            continue
        scope = f" ({plan.scope.value})" if plan.scope else ""
        out.line(out.paint(f"{plan.client.title}: {shown(plan.path)}{scope}", "bold"))
        width = max((len(shown(row.server)) for row in plan.rows), default=0)
        for row in plan.rows:
            _print_row(row, width, redactor, out)
        if plan.hooks:
            _print_hooks(plan.hooks, width, out)
        elif not plan.rows:
            out.line("  no MCP servers")


def _print_hooks(hooks: HookRow, width: int, out: Output) -> None:
    word, colour = _HOOK_WORDS[hooks.action]
    word = out.paint(f"{word:<8}", colour)
    detail = ", ".join(hooks.events)
    if len(detail) > _MAX_DETAIL_CHARS:
        detail = detail[: _MAX_DETAIL_CHARS - 1] + "…"
    out.line(f"  {'hooks':<{width}}  {word}  {detail}")


def _print_row(row: Row, width: int, redactor: Redactor, out: Output) -> None:
    word, colour = _WORDS[row.action]
    detail = shown(redactor.redact(row.detail)[0])
    if len(detail) > _MAX_DETAIL_CHARS:
        detail = detail[: _MAX_DETAIL_CHARS - 1] + "…"
    told = ", ".join(shown(secret.variable) for secret in row.secrets)
    secrets = f"  [secrets in env: {told}]" if told else ""
    if row.dropped:
        secrets += f"  [removed: {', '.join(shown(name) for name in row.dropped)}]"
    word = out.paint(f"{word:<8}", colour)
    out.line(f"  {shown(row.server):<{width}}  {word}  {detail}{secrets}".rstrip())


def _json_row(plan: Proposal, row: Row, redactor: Redactor, changed: set[str]) -> dict[str, Any]:
    return {
        "client": plan.client.name,
        "path": plan.path,
        "scope": plan.scope.value if plan.scope else None,
        "server_name": row.server,
        "action": row.action.value,
        "detail": redactor.redact(row.detail)[0],
        "secrets": [secret.variable for secret in row.secrets],
        "dropped": list(row.dropped),
        "changed": plan.path in changed and row.changes,
    }


def _json_hooks(plan: Proposal, hooks: HookRow, changed: set[str]) -> dict[str, Any]:
    """The agent's own tools are a server of its name with `@`, as in the record."""
    return {
        "client": plan.client.name,
        "path": plan.path,
        "scope": plan.scope.value if plan.scope else None,
        "server_name": f"@{plan.client.name}",
        "action": hooks.action.value,
        "detail": "hooks",
        "hooks": list(hooks.events),
        "changed": plan.path in changed and plan.adds_hooks,
    }


def print_diff(plan: Proposal, out: Output) -> None:
    """Prints what would change as a unified diff without secrets."""
    before, after = (
        data.decode("utf-8-sig").splitlines(keepends=True) for data in (plan.before, plan.after)
    )
    redactor = _redactor([plan])
    for line in difflib.unified_diff(before, after, plan.path, f"{plan.path} (imported)"):
        text = shown(redactor.redact(line.rstrip("\r\n"))[0])
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[0])
        out.line(out.paint(text, colour) if colour else text)


def print_drift(found: list[Finding], as_json: bool, out: Output) -> None:
    """Prints the servers that do not go through a shim."""
    for finding in found:
        if as_json:
            out.json({**finding._asdict(), "kind": finding.kind.value})
            continue
        colour = "red" if finding.is_mendable else "yellow"
        out.line(f"{out.paint(finding.kind.value, colour)}: {shown(finding.message)}")
        out.line(f"  {out.paint('hint', 'cyan')}: {shown(finding.hint)}")
    if not any(finding.is_mendable for finding in found) and not as_json:
        out.talk("Every stdio server goes through a shim.")


def warn_about(plans: list[Proposal], out: Output, *, binds_secrets: bool) -> None:
    """Warns about what an import does not cover."""
    for plan in plans:
        for row in plan.rows:
            if row.action is Action.REFUSE:
                out.warning(f"`{row.server}` in `{plan.path}` was left unchanged: {row.detail}")
            if row.dropped:
                told = ", ".join(f"`{name}`" for name in row.dropped)
                out.warning(
                    f"`{row.server}` in `{plan.path}` sets {told}, which a project's file may not "
                    "set; the import removes it",
                    "set it in your own environment or configuration if you want it",
                )
    hooked = {plan.client.name for plan in plans if plan.hooks}
    rows = [row for plan in plans if plan.client.name not in hooked for row in plan.rows]
    remote = [row.server for row in rows if row.action is Action.REMOTE]
    if remote:
        told = ", ".join(f"`{name}`" for name in remote)
        out.warning(
            f"http and sse servers are not wrapped yet, so their calls are not seen: {told}"
        )
    secrets = [s for plan in plans for row in plan.rows for s in row.secrets]
    if secrets and not binds_secrets:
        told = ", ".join(f"`{secret.variable}`" for secret in secrets)
        out.warning(
            f"these secrets are in `env`, where every agent can read them: {told}",
            "use `--bind-secrets` to move them out of the configuration",
        )
    shared = [p.path for p in plans if p.scope is Scope.PROJECT and p.changes]
    if shared:
        out.warning(
            f"`{shared[0]}` belongs to the project: all who use it need `sub` at the same path",
            "use `--scope user` to leave it unchanged",
        )


def print_done(done: list[Done], binder: Binder | None, out: Output) -> None:
    """Prints what changed."""
    if not done:
        out.talk("Nothing to change.")
        return
    out.talk("")
    for finished in done:
        out.talk(f"{_told(finished.proposal)} `{shown(finished.proposal.path)}`")
        out.talk(f"  backup: `{finished.backup.folder}`")
    for moved in binder.outcomes.values() if binder else ():
        told = f"`{moved.variable}` of `{moved.server}`"
        if moved.note:
            out.talk(f"moved {shown(told)} to {moved.note.source.value} `{moved.note.name}`")
        else:
            out.warning(f"{told} stayed in the configuration: {moved.reason}")
    for server, approval in binder.approvals.items() if binder else ():
        command = shown(_redactor([]).redact(shlex.join(approval.command))[0])
        out.talk(f"approved `{command}` for the secrets of `{shown(server)}`")
        names = left_out(approval, os.environ, ())
        if names:
            told = ", ".join(f"`{shown(name)}`" for name in names)
            line = f"sub secrets approve --env {shown(names[0])} {shown(server)} -- COMMAND…"
            out.talk(f"  it does not get {told} from the client; `{line}` passes one on")
        trusts = also_decides(approval.command, Scene(os.environ, os.getcwd()))
        if trusts:
            warn_trusts(server, trusts, out)


def print_next(done: list[Done], undo: str, out: Output, *, deaf: frozenset[str]) -> None:
    """Prints what holds now, and how to undo it. `deaf` are clients that do not run their hooks."""
    if not done:
        return
    hooked = [each.proposal.client for each in done if each.proposal.adds_hooks]
    told = " and ".join(client.title for client in hooked if client.name not in deaf)
    if told:
        out.talk(f"Every tool of {told} is now decided and recorded, not only MCP servers.")
    out.talk(f"Restart the client, then watch its calls with `sub tail`. Undo this with `{undo}`.")


def warn_trusts(server: str, trusts: str, out: Output) -> None:
    """Warns that an approved program does not decide alone which code gets the secret."""
    out.warning(
        f"which code of `{server}` gets the secret also depends on {trusts}",
        "to rule that out, install the server, and approve the path of its program",
    )


def _told(proposal: Proposal) -> str:
    """Says what was done to a file, up to its name."""
    count = sum(row.changes for row in proposal.rows)
    servers = f"wrapped {counted(count, 'server')}"
    if not proposal.adds_hooks:
        return f"{servers} in"
    return f"{servers} and added hooks in" if count else "added hooks to"


def _redactor(plans: list[Proposal]) -> Redactor:
    secrets = [s for plan in plans for row in plan.rows for s in row.secrets]
    return Redactor([SecretValue(secret.variable, secret.value) for secret in secrets])
