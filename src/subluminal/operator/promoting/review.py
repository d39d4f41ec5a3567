"""Review of an exception before it is written: its text, its effect and a backtest."""

import difflib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from subluminal.clock import now, rfc3339
from subluminal.contracts.vocabulary import Action
from subluminal.importer.files import ReadFile, read_config, refuse_unwritable, replace
from subluminal.ledger.query.replaying import backtest, snapshots_of
from subluminal.operator.promoting.editing import PolicyEdit, Wish, edit_policy
from subluminal.operator.promoting.hinted import Hinted
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.diff.diffing import diff
from subluminal.policy.diff.report import Report, report
from subluminal.policy.promoting import decide
from subluminal.policy.replay.tallying import Backtest
from subluminal.trust.identity.machine import local_user

if TYPE_CHECKING:
    import apsw


class Review(NamedTuple):
    """One planned exception, with everything that a person should see before it is written."""

    file: str
    found: ReadFile
    """the policy's file as it was read"""
    edit: PolicyEdit
    report: Report
    backtest: Backtest
    still_refused_by: list[str]
    """rules of other layers that refuse the call too: the exception does not reach them"""

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


def review_exception(
    connection: "apsw.Connection",
    hinted: Hinted,
    file: str,
    *,
    args: str,
    keys: list[str],
    rule_id: str | None = None,
    since_ms: int | None = None,
    watch: Callable[[int], None] = lambda _calls: None,
) -> Review:
    """Plans an exception in `file` and replays the calls since `since_ms` with and without it.

    `watch` is told how many past calls were looked at. Raises SubluminalError.
    """
    found = read_config(file)
    refuse_unwritable(file, found)
    by = f"promoted from {hinted.hint_id} by {local_user()}, {rfc3339(now().wall_ms)[:10]}"
    edit = edit_policy(found.data, file, hinted, Wish(args, keys, rule_id, by))
    past = backtest(
        connection,
        compile_bundle(edit.old),
        compile_bundle(edit.new),
        layer=hinted.layer,
        since_ms=since_ms,
        tool=(hinted.call.server_name, hinted.call.tool_name),
        watch=watch,
    )
    changes = report(edit.old, edit.new, diff(edit.old, edit.new))
    return Review(file, found, edit, changes, past, _still_refused_by(connection, hinted))


def _still_refused_by(connection: "apsw.Connection", hinted: Hinted) -> list[str]:
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
