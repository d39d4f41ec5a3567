"""Review of a policy change before it is written: its text, its effect and a backtest."""

import difflib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from subluminal.clock import now, rfc3339
from subluminal.contracts.vocabulary import Action
from subluminal.core.policies.installed import installed_judge
from subluminal.importer.files import ReadFile, read_config, refuse_unwritable, replace
from subluminal.ledger.query.replaying import LedgerReplay, backtest, snapshots_of
from subluminal.operator.promoting.editing import PolicyEdit, Wish, edit_policy
from subluminal.operator.promoting.hinted import Hinted
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.diff.diffing import diff
from subluminal.policy.diff.report import Report, report
from subluminal.policy.promoting import decide
from subluminal.policy.replay.tallying import Backtest
from subluminal.policy.snapshot import Snapshot
from subluminal.trust.identity.machine import local_user

if TYPE_CHECKING:
    import apsw


class Review(NamedTuple):
    """One planned change, with everything that a person should see before it is written."""

    file: str
    found: ReadFile
    """the policy's file as it was read"""
    edit: PolicyEdit
    report: Report
    backtest: Backtest
    still_refused_by: list[str]
    """rules of other layers that refuse the call too: the change does not reach them"""
    doubt: str | None
    """why it is not certain that the call would pass now; None if it is"""

    def diff_lines(self) -> list[str]:
        """Returns the change of the text as a unified diff."""
        before, after = (
            data.decode("utf-8-sig").splitlines() for data in (self.found.data, self.edit.data)
        )
        return list(difflib.unified_diff(before, after, self.file, self.file, lineterm=""))

    def plain(self) -> dict[str, Any]:
        """Returns the review as `--json` prints it."""
        found: dict[str, Any] = msgspec.to_builtins(self.report)
        return {
            "file": self.file,
            "rule": self.edit.rule,
            "numbers": [number._asdict() for number in self.edit.numbers],
            "diff": "".join(f"{line}\n" for line in self.diff_lines()),
            "severity": found["severity"],
            "changes": found["changes"],
            "also_passed": self.edit.also_passed,
            "still_refused_by": self.still_refused_by,
            "backtest": self.backtest.plain(),
        }

    def write(self) -> None:
        """Replaces the policy's file. Raises FileChanged if it changed since it was read."""
        replace(self.found, self.edit.data)


def review_change(
    connection: "apsw.Connection",
    hinted: Hinted,
    file: str,
    *,
    args: str | None,
    keys: list[str],
    rule_id: str | None = None,
    numbers: dict[str, int] | None = None,
    since_ms: int | None = None,
    watch: Callable[[int], None] = lambda _calls: None,
) -> Review:
    """Plans a change of `file` and replays the calls since `since_ms` with and without it.

    `watch` is told how many past calls were looked at. Raises SubluminalError.
    """
    found = read_config(file)
    refuse_unwritable(file, found)
    by = f"promoted from {hinted.hint_id} by {local_user()}, {rfc3339(now().wall_ms)[:10]}"
    edit = edit_policy(found.data, file, hinted, Wish(args, keys, rule_id, by, numbers or {}))
    new = compile_bundle(edit.new)
    past = backtest(
        connection,
        compile_bundle(edit.old),
        new,
        layer=hinted.layer,
        since_ms=since_ms,
        # An exception is for one tool. A limit may count the calls of others.
        tool=None if edit.numbers else (hinted.call.server_name, hinted.call.tool_name),
        watch=watch,
    )
    changes = report(edit.old, edit.new, diff(edit.old, edit.new))
    others = _still_refused_by(connection, hinted)
    return Review(file, found, edit, changes, past, others, _doubt(connection, hinted, edit, new))


def _doubt(
    connection: "apsw.Connection", hinted: Hinted, edit: PolicyEdit, new: Snapshot
) -> str | None:
    """Returns why it is not certain that the call would pass under the changed policy."""
    if edit.is_proven:
        return None
    if not edit.numbers:
        return "it is not proven that this call would pass, because its arguments are not recorded"
    replay = LedgerReplay(connection, new, layer=hinted.layer)
    for row in replay.rows([hinted.run_id]):
        if row.call.call_id == hinted.call_id and row.now is not None:
            if row.now.action is Action.ALLOW:
                return None
            return f"this call would still be refused, by rule `{row.now.rule_id}`"
    return "it is not proven that this call would pass, because the record is incomplete"


def _still_refused_by(connection: "apsw.Connection", hinted: Hinted) -> list[str]:
    if hinted.call.args is None:
        return []
    find = snapshots_of(connection)
    told = []
    for layer, policy_hash in hinted.other_layers:
        snapshot = find(policy_hash)
        if snapshot is None:
            continue
        decision = decide(snapshot, hinted.call, installed_judge)
        if decision.action is not Action.ALLOW:
            told.append(f"rule `{decision.rule_id}` of `{snapshot.policy_id}` ({layer.value})")
    return told
