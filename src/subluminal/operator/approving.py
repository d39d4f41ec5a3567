"""Calls that wait for approval: list, approve and deny them (no-call-waits).

Reads and writes the home's files; needs neither ledger nor daemon.
"""

from typing import Any, NamedTuple

from msgspec import UNSET, to_builtins

from subluminal.config.places import Places
from subluminal.config.settings import ApprovalSettings
from subluminal.contracts.vocabulary import Requirement
from subluminal.core.controls import grants
from subluminal.core.controls.grants import (
    DEFAULT_TTL_MS,
    MAX_TTL_MS,
    MAX_USES,
    Waiting,
    all_waiting,
    check_open,
    find_waiting,
    full_runs,
    issue_grant,
)
from subluminal.core.runs.living import known_run
from subluminal.errors import SubluminalError, UsageError
from subluminal.operator.amounts import duration, milliseconds_in
from subluminal.operator.tickets import ask_about, check_form

_SEEN_BY_CALLER = (Requirement.STEP_UP, Requirement.HUMAN)
"""Requirements that only the caller can see to, at a terminal or in a program's own callback."""


class Listed(NamedTuple):
    """Approvals, oldest first."""

    approvals: list[Waiting]
    full_runs: list[str]
    """runs with so many open approvals that they cannot ask for more"""


class Approved(NamedTuple):
    """An approval that was granted."""

    waiting: Waiting
    """the approval with its answer"""
    ttl_ms: int
    """how long the grant lasts, in milliseconds"""
    is_blind: bool
    """whether the record does not hold the call's arguments in full"""


class Denied(NamedTuple):
    """An approval that was denied."""

    waiting: Waiting
    """the approval with its answer"""
    was_granted: bool
    """whether this revoked an earlier grant"""


def list_approvals(places: Places, *, run: str | None = None, every: bool = False) -> Listed:
    """Lists pending approvals, or with `every` also those answered and expired.

    `run` is a run's id, or the beginning or end of one.
    """
    everything = all_waiting(places)
    run_id = run
    if run is not None and all(each.request.run_id != run for each in everything):
        run_id = known_run(places, run)
    found = [
        each
        for each in everything
        if (every or each.state == "pending") and run_id in (None, each.request.run_id)
    ]
    return Listed(found, full_runs(everything))


def approve(
    places: Places,
    approval_id: str,
    *,
    uses: int = 1,
    ttl: str | None = None,
    reason: str | None = None,
    ticket: str | None = None,
    met: Requirement | None = None,
    settings: ApprovalSettings,
) -> Approved:
    """Grants a waiting call: its next `uses` tries pass the rule that asked.

    `ttl` is a duration such as `10m`; without it the rule's own, or one hour. `met` is STEP_UP if
    the caller has seen a person authenticate, HUMAN if the caller has seen a person agree.
    `settings` say which tickets are accepted. Raises SubluminalError.
    """
    check_uses(uses)
    waiting = find_waiting(places, approval_id)
    check_open(places, waiting)
    request, rule_id = waiting.request, waiting.slot.rule_id
    longest_ms = request.approval.grant_ms or None
    ttl_ms = grant_ms(ttl, longest_ms or DEFAULT_TTL_MS, rule_id, longest_ms)
    required = request.approval.requirement
    if required in _SEEN_BY_CALLER and met is not required:
        raise SubluminalError(f"rule `{rule_id}` requires `{required}`, which nobody has met")
    _check_ticket(places, waiting, ticket, settings)
    answer = issue_grant(
        places,
        request.run_id,
        waiting.slot,
        uses=uses,
        ttl_ms=ttl_ms,
        reason=reason,
        requirement=required,
        ticket=ticket,
        approval_id=waiting.approval_id,
    )
    is_blind = request.is_cut or request.args_preview is None
    return Approved(waiting._replace(state="approved", answer=answer), ttl_ms, is_blind)


def named(places: Places, approval_id: str) -> Waiting | None:
    """Returns the approval that the id names; None if there is none, which `approve` explains."""
    try:
        return find_waiting(places, approval_id)
    except SubluminalError:
        return None


def _check_ticket(
    places: Places, waiting: Waiting, ticket: str | None, settings: ApprovalSettings
) -> None:
    if ticket is not None:
        check_form(ticket, settings)
        ask_about(ticket, settings, places)
    elif waiting.request.approval.requirement is Requirement.TICKET:
        pattern = settings.ticket_pattern
        like = "" if pattern is None else f", which must match `{pattern}`"
        raise UsageError(
            f"rule `{waiting.slot.rule_id}` requires a ticket",
            hint=f"give it with `--ticket REF`{like}",
        )


def deny(places: Places, approval_id: str, *, reason: str | None = None) -> Denied:
    """Denies a waiting call for as long as its run lasts. Revokes a grant given before."""
    waiting = find_waiting(places, approval_id)
    answer = grants.deny(places, waiting, reason=reason)
    was_granted = waiting.state == "approved"
    return Denied(waiting._replace(state="denied", answer=answer), was_granted)


def check_uses(uses: int) -> None:
    """Raises UsageError if a grant cannot be given for this many calls."""
    if not 1 <= uses <= MAX_USES:
        raise UsageError(f"`--uses` must be between 1 and {MAX_USES}")


def grant_ms(ttl: str | None, default_ms: int, rule_id: str, longest_ms: int | None) -> int:
    """Returns how long a grant lasts, in milliseconds. `longest_ms` is the rule's `expires_ms`."""
    longest_ms = MAX_TTL_MS if longest_ms is None else min(longest_ms, MAX_TTL_MS)
    if ttl is None:
        return min(default_ms, longest_ms)
    wanted_ms = milliseconds_in(ttl, "--ttl")
    if wanted_ms > MAX_TTL_MS:
        raise UsageError(f"`--ttl` can be at most {duration(MAX_TTL_MS)}")
    if wanted_ms > longest_ms:
        raise SubluminalError(
            f"rule `{rule_id}` allows a grant of at most {duration(longest_ms)}",
            hint="leave `--ttl` out, or change `expires_ms` of the rule",
        )
    return wanted_ms


def approval_row(waiting: Waiting) -> dict[str, Any]:
    """Returns an approval as `--json` prints it. Scripts rely on the field names."""
    request, asked, answer = waiting.request, waiting.request.approval, waiting.answer
    row: dict[str, Any] = {
        "approval_id": asked.approval_id,
        "run_id": request.run_id,
        "server_name": request.call.server_name,
        "tool_name": request.call.tool_name,
        "args_hash": request.call.args_hash,
        "args_preview": request.args_preview,
        "rule_id": asked.rule_id,
        "reason_code": asked.reason_code,
        "requested_at": asked.requested_at,
        "expires_at": asked.expires_at,
        "state": waiting.state,
        "args_truncated": request.is_cut,
        "layer": asked.layer,
        "requirement": asked.requirement,
        "severity": asked.severity,
        "message": asked.message,
        "approver_role": None if asked.approver_role is UNSET else asked.approver_role,
        "call_id": request.call.call_id,
        "asked": request.asked,
        "run_is_over": waiting.run_is_over,
        **to_builtins(request.identity),
        "answer": None,
    }
    if answer is not None:
        row["answer"] = {**to_builtins(answer.given), "used": waiting.used}
    return row
