"""A grant for one run: calls of one tool pass the rule that refused one of them.

A limit is passed by the very call that it refused, once or as often as a person says.
"""

from typing import TYPE_CHECKING, Any

from subluminal.config.places import Places
from subluminal.contracts.control import ApprovalGiven
from subluminal.core.controls.approval_files import Slot
from subluminal.core.controls.grants import DEFAULT_TTL_MS, issue_grant
from subluminal.errors import SubluminalError
from subluminal.ledger.query.replaying import snapshots_of
from subluminal.operator.approving import check_uses, grant_ms
from subluminal.operator.promoting.hinted import Hinted
from subluminal.policy.promoting import left_to_pack
from subluminal.policy.raising import limit_kind
from subluminal.policy.refusing import AT_APPROVE

if TYPE_CHECKING:
    import apsw


def grant_for_run(
    places: Places,
    connection: "apsw.Connection",
    hinted: Hinted,
    *,
    ttl: str | None,
    uses: int | None,
    reason: str | None,
) -> ApprovalGiven:
    """Issues and records the grant.

    `uses` None means any number of calls; for a limit, one.

    `ttl` is a duration such as `10m`; without it one hour. Raises SubluminalError.
    """
    effect = _effect(connection, hinted)
    if "kernel" in effect:
        raise left_to_pack(hinted.rule_id or "", effect["kernel"]["pack"])
    if effect.get("require") in AT_APPROVE:
        raise SubluminalError(
            f"rule `{hinted.rule_id}` requires `{effect['require']}`, which a grant for the run"
            " does not give",
            hint="repeat the call, find it with `sub approvals`, and use `sub approve`",
        )
    longest_ms: int | None = effect.get("expires_ms")
    ttl_ms = grant_ms(ttl, DEFAULT_TTL_MS, hinted.rule_id or "", longest_ms)
    if uses is not None:
        check_uses(uses)
    rule_id, layer = hinted.rule_id, hinted.layer
    if rule_id is None or layer is None:
        raise SubluminalError(
            f"`{hinted.hint_id}` does not name a rule of a policy, so there is nothing to grant"
        )
    call = hinted.call
    args_hash = None if limit_kind(hinted.reason_code) is None else hinted.args_hash
    answer = issue_grant(
        places,
        hinted.run_id,
        Slot(call.server_name, call.tool_name, args_hash, layer, rule_id),
        uses=uses,
        ttl_ms=ttl_ms,
        reason=reason or f"promoted from {hinted.hint_id}",
    )
    return answer.given


def _effect(connection: "apsw.Connection", hinted: Hinted) -> dict[str, Any]:
    """Returns the effect of the rule at the time when it refused the call; empty if unknown."""
    snapshot = snapshots_of(connection)(hinted.policy_hash or "")
    rules = [] if snapshot is None else snapshot.data["rules"]
    effects = [rule["effect"] for rule in rules if rule["rule_id"] == hinted.rule_id]
    return effects[0] if effects else {}
