"""The guards of `terminal.run`, in the order in which they are asked."""

import os
import shlex
from typing import Any

from subluminal.kernel import (
    Decision,
    Defer,
    Escalate,
    EscalateTo,
    Execute,
    IntentEnvelope,
    Refuse,
    RequestConfirmation,
    Rewrite,
    basis,
    refuse,
    with_payload,
)
from subluminal.packs.fields import member, replaced, texts
from subluminal.packs.shell.lines import (
    Reading,
    as_written,
    command_of,
    cwd_of,
    is_within,
    readings,
)
from subluminal.packs.shell.listing import is_listed
from subluminal.packs.shell.risks import is_recursive, risk_in, ruin_in
from subluminal.packs.shell.secrets import credential_in

RUN = "terminal.run"
MAINTENANCE_SIGNAL = "shell:maintenance_window"
MAINTENANCE_TIMEOUT_MS = 900_000

PAYLOAD_INVALID = "command_payload_invalid"
CWD_NOT_ALLOWED = "cwd_not_allowed"
SESSION_NOT_ALLOWED = "session_not_allowed"
RISK_BLOCKED = "command_risk_blocked"
DEFAULT_DENY = "command_default_deny"
CODES = (PAYLOAD_INVALID, CWD_NOT_ALLOWED, SESSION_NOT_ALLOWED, RISK_BLOCKED, DEFAULT_DENY)

_STRIPPED = frozenset(("--no-preserve-root", "-f", "--force"))
"""Options of `rm` that switch a safeguard off."""


def check_command(envelope: IntentEnvelope, _state: Any) -> Decision | None:
    """There must be a command, not too long, and arguments must be a list of strings."""
    if envelope.kind != RUN or command_of(envelope) is not None:
        return None
    refusal = refuse("STATE", PAYLOAD_INVALID, "There is no command to run.")
    return Refuse(refusal, (basis("schema", "payload_invalid", field="command"),))


def check_cwd(envelope: IntentEnvelope, state: Any) -> Decision | None:
    """A working directory must be one of those allowed, or below one."""
    cwd: Any = member(envelope, "cwd")
    allowed = _allowed_cwds(state)
    if envelope.kind != RUN or cwd is None:
        return None
    is_path = isinstance(cwd, str) and cwd.startswith("/") and "\0" not in cwd
    if is_path and (not allowed or is_within(cwd_of(envelope), allowed)):
        return None
    refusal = refuse("BUSINESS_RULE", CWD_NOT_ALLOWED, "Commands may not run in this directory.")
    return Refuse(refusal, (basis("business", "rule_violated", rule="cwd_allowlist"),))


def _allowed_cwds(state: Any) -> tuple[str, ...]:
    return tuple(map(os.path.normpath, texts(state, "allowedCwds")))


def check_session(envelope: IntentEnvelope, state: Any) -> Decision | None:
    """If the state lists sessions, no other may propose anything."""
    sessions = None if state.get("sessions") is None else texts(state, "sessions")
    if sessions is None or envelope.actor.session_id in sessions:
        return None
    refusal = refuse("AUTH", SESSION_NOT_ALLOWED, "This session may not use the machine.")
    return Refuse(refusal, (basis("auth", "scope_insufficient", kind=envelope.kind),))


def escalate_credentials(envelope: IntentEnvelope, _state: Any) -> Decision | None:
    """A person decides about files with credentials, unless the line is refused anyway."""
    found = _readings(envelope)
    named = next(filter(None, map(credential_in, found)), None)
    if named is None or any(map(ruin_in, found)):
        return None
    reason = basis("business", "rule_satisfied", rule="credential_file")
    said = f"the line names a credential file: {as_written(named)}"
    return Escalate(EscalateTo.HUMAN, said, (reason,))


def refuse_ruin(envelope: IntentEnvelope, _state: Any) -> Decision | None:
    """What cannot be undone is refused."""
    found = next(filter(None, map(ruin_in, _readings(envelope))), None)
    if found is None:
        return None
    refusal = refuse("SECURITY", RISK_BLOCKED, "This command cannot be undone.", found)
    return Refuse(refusal, (basis("validation", "command_blocked", rule=found),))


def strip_flags(envelope: IntentEnvelope, _state: Any) -> Decision | None:
    """Takes options that switch safeguards off from an `rm -r`; the rest is judged anew."""
    argv = _lone_rm(_readings(envelope))
    flags = sorted(_STRIPPED.intersection(argv or ()))
    if argv is None or not flags:
        return None
    payload = dict(envelope.payload)
    args: Any = member(envelope, "args")
    if args and not _STRIPPED.isdisjoint(args):
        payload = replaced(envelope, "args", [word for word in args if word not in _STRIPPED])
    elif not args:
        kept = [word for word in argv if word not in _STRIPPED]
        payload = replaced(envelope, "command", shlex.join(kept))
    else:
        return None
    reason = basis("validation", "command_flag_stripped", flags=flags)
    said = f"{', '.join(flags)} of rm was left out"
    return Rewrite(with_payload(envelope, payload), said, (reason,))


def _lone_rm(found: list[Reading]) -> list[str] | None:
    """Returns the words of an `rm -r` that is all there is; None for everything else."""
    commands = found[0].literal if len(found) == 1 else None
    if not commands or len(commands) != 1 or commands[0][0] != "rm" or "--" in commands[0]:
        return None
    return commands[0] if is_recursive(commands[0]) else None


def confirm_risk(envelope: IntentEnvelope, _state: Any) -> Decision | None:
    """The user confirms risks."""
    found = next(filter(None, map(risk_in, _readings(envelope))), None)
    if found is None:
        return None
    reason = basis("business", "rule_satisfied", rule=found)
    return RequestConfirmation(f"This command has a risk ({found}). Run it?", (reason,))


def defer_in_maintenance(envelope: IntentEnvelope, state: Any) -> Decision | None:
    """In a maintenance window everything waits."""
    if envelope.kind != RUN or not state.get("maintenanceActive"):
        return None
    reason = basis("state", "transition_valid", reason="maintenance_window")
    return Defer(MAINTENANCE_SIGNAL, MAINTENANCE_TIMEOUT_MS, (reason,))


def execute_listed(envelope: IntentEnvelope, state: Any) -> Decision | None:
    """Runs a line of listed programs, if every reading of it is one."""
    found = _readings(envelope)
    roots = _allowed_cwds(state) or (cwd_of(envelope),)
    allowlist = texts(state, "allowlist")
    if not found or not all(is_listed(each, allowlist, roots) for each in found):
        return None
    if any(_programs(each) != _programs(found[0]) for each in found):
        return None  # an argument that one reading takes for a command
    return Execute((basis("business", "rule_satisfied", rule="allowlist"),))


def _programs(reading: Reading) -> list[str]:
    return [argv[0] for argv in reading.literal or ()]


def leave_unlisted(envelope: IntentEnvelope, state: Any) -> Decision | None:
    """The rest is refused, or confirmed if the state says so."""
    if envelope.kind != RUN:
        return None
    if state.get("onUnlisted") == "confirm":
        reason = basis("business", "rule_violated", rule="allowlist")
        return RequestConfirmation("This command is not listed. Run it?", (reason,))
    refusal = refuse("SECURITY", DEFAULT_DENY, "This command is not allowed here.")
    return Refuse(refusal, (basis("validation", "command_blocked", rule="allowlist"),))


def _readings(envelope: IntentEnvelope) -> list[Reading]:
    return readings(envelope) if envelope.kind == RUN else []


STATE_GUARDS = (check_command, check_cwd)
BUSINESS = (
    escalate_credentials,
    refuse_ruin,
    strip_flags,
    confirm_risk,
    defer_in_maintenance,
    execute_listed,
    leave_unlisted,
)
