"""A grant for a whole run: calls of a tool pass the rule that refused one of them."""

import apsw

from subluminal.cli.durations import told
from subluminal.cli.promoting.hinted import Hinted
from subluminal.config.places import Places
from subluminal.contracts.control import ApprovalGiven
from subluminal.core.approval_files import Slot
from subluminal.core.grants import DEFAULT_TTL_MS, issue_grant
from subluminal.errors import SubluminalError, UsageError
from subluminal.ledger.query.replaying import snapshots_of
from subluminal.policy.promoting import refuse_limits


def grant_for_run(
    places: Places, hinted: Hinted, *, ttl_ms: int, uses: int | None, reason: str | None
) -> ApprovalGiven:
    """Makes and records the grant. Raises SubluminalError."""
    if uses is not None and uses < 1:
        raise UsageError("`--uses` is at least 1")
    rule_id, layer = hinted.rule_id, hinted.layer
    if rule_id is None or layer is None:
        raise SubluminalError(
            f"`{hinted.hint_id}` names no rule of a policy, so there is nothing to grant"
        )
    refuse_limits(rule_id, hinted.reason_code)
    call = hinted.call
    answer = issue_grant(
        places,
        hinted.run_id,
        Slot(call.server_name, call.tool_name, None, layer, rule_id),
        uses=uses,
        ttl_ms=ttl_ms,
        reason=reason or f"promoted from {hinted.hint_id}",
    )
    return answer.given


def allowed_ttl_ms(connection: apsw.Connection, hinted: Hinted, wish_ms: int | None) -> int:
    """How long the grant lasts: as a person wishes, and the rule allows."""
    longest_ms = _longest_ms(connection, hinted)
    if longest_ms is None:
        return wish_ms or DEFAULT_TTL_MS
    if wish_ms is not None and wish_ms > longest_ms:
        raise SubluminalError(
            f"rule `{hinted.rule_id}` lets a grant last {told(longest_ms)} at most",
            hint=f"`--ttl {told(longest_ms)}`, or change `expires_ms` of the rule",
        )
    return wish_ms or min(longest_ms, DEFAULT_TTL_MS)


def _longest_ms(connection: apsw.Connection, hinted: Hinted) -> int | None:
    """The rule's `expires_ms`, as it was when it refused."""
    snapshot = snapshots_of(connection)(hinted.policy_hash or "")
    rules = [] if snapshot is None else snapshot.data["rules"]
    effects = [rule["effect"] for rule in rules if rule["rule_id"] == hinted.rule_id]
    longest_ms: int | None = effects[0].get("expires_ms") if effects else None
    return longest_ms
