"""What the ledger says of an exception: past calls, and the other layers that were asked."""

from typing import NamedTuple

import apsw

from subluminal.cli.output import Output
from subluminal.contracts.vocabulary import Action
from subluminal.ledger.query.replaying import backtest, snapshots_of
from subluminal.operator.promoting.hinted import Hinted
from subluminal.operator.promoting.planning import Plan
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.promoting import decide
from subluminal.policy.replay.tallying import Backtest


class Past(NamedTuple):
    """What is known from the record."""

    backtest: Backtest
    still_refused_by: list[str]
    """rules of other layers, in words: an exception in one policy does not reach them"""


def look_back(
    connection: apsw.Connection, plan: Plan, hinted: Hinted, since_ms: int | None, out: Output
) -> Past:
    """Replays what was recorded since then, by the policy before and by the one after."""
    call = hinted.call
    found = backtest(
        connection,
        compile_bundle(plan.old),
        compile_bundle(plan.new),
        layer=hinted.layer,
        since_ms=since_ms,
        tool=(call.server_name, call.tool_name),
        watch=lambda calls: out.progress(f"{calls} past calls looked at"),
    )
    out.progress()
    return Past(found, _still_refused_by(connection, hinted))


def _still_refused_by(connection: apsw.Connection, hinted: Hinted) -> list[str]:
    if hinted.call.args is None:
        return []
    find = snapshots_of(connection)
    told = []
    for layer, policy_hash in hinted.other_layers:
        snapshot = find(policy_hash)
        if snapshot is None:
            continue
        decision = decide(snapshot, hinted.call)
        if decision.action is not Action.ALLOW:
            told.append(f"rule `{decision.rule_id}` of `{snapshot.policy_id}` ({layer.value})")
    return told
