"""A grant for a whole run: calls of a tool pass the rule that refused one of them."""

import apsw

from subluminal.config.places import Places
from subluminal.contracts.control import ApprovalGiven
from subluminal.core.controls.approval_files import Slot
from subluminal.core.controls.grants import DEFAULT_TTL_MS, MAX_USES, issue_grant
from subluminal.errors import SubluminalError, UsageError
from subluminal.ledger.query.replaying import snapshots_of
from subluminal.operator.grant_length import grant_ms
from subluminal.operator.promoting.hinted import Hinted
from subluminal.policy.promoting import refuse_limits


def grant_for_run(
    places: Places, hinted: Hinted, *, ttl_ms: int, uses: int | None, reason: str | None
) -> ApprovalGiven:
    """Makes and records the grant. Raises SubluminalError."""
    if uses is not None and not 1 <= uses <= MAX_USES:
        raise UsageError(
            f"`--uses` is 1 to {MAX_USES}", hint="without it the grant is for any number of calls"
        )
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


def allowed_ttl_ms(connection: apsw.Connection, hinted: Hinted, wish: str | None) -> int:
    """How long the grant lasts."""
    rule_id = hinted.rule_id or ""
    return grant_ms(wish, DEFAULT_TTL_MS, rule_id, _longest_ms(connection, hinted))


def _longest_ms(connection: apsw.Connection, hinted: Hinted) -> int | None:
    """The rule's `expires_ms`, as it was when it refused."""
    snapshot = snapshots_of(connection)(hinted.policy_hash or "")
    rules = [] if snapshot is None else snapshot.data["rules"]
    effects = [rule["effect"] for rule in rules if rule["rule_id"] == hinted.rule_id]
    longest_ms: int | None = effects[0].get("expires_ms") if effects else None
    return longest_ms
