"""Writes a diff as text, as Markdown for a comment, and as data for JSON."""

import msgspec

from subluminal.contracts.bundle import Bundle
from subluminal.contracts.decision import PolicyRef
from subluminal.contracts.vocabulary import Severity
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.diff.changes import Change, quoted, worst

MAX_ROWS = 80
"""Most rows of each table in a comment."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A diff and the two policies that it compares. Encodes to what `--json` prints."""

    severity: Severity | None
    """highest severity of all changes; null if there are none"""
    old: PolicyRef
    """the policy before"""
    new: PolicyRef
    """the policy after"""
    counts: dict[str, int]
    """severity to the number of changes"""
    changes: list[Change]
    """all changes, the most severe first"""


def report(old: Bundle, new: Bundle, changes: list[Change]) -> Report:
    """Builds the report of a diff."""
    severities = [change.severity for change in changes]
    return Report(
        severity=worst(severities),
        old=compile_bundle(old).ref,
        new=compile_bundle(new).ref,
        counts={each.value: severities.count(each) for each in reversed(Severity)},
        changes=changes,
    )


def as_text(found: Report) -> list[str]:
    """Returns lines for a terminal."""
    if not found.changes:
        return [f"{_title(found)}: no changes"]
    lines = [f"{_title(found)}: {_counts(found)}"]
    return lines + [
        f"  {change.severity:<8}  {_subject(change)}{change.summary}" for change in found.changes
    ]


def as_markdown(found: Report) -> list[str]:
    """Returns the lines of a comment. Values are in code spans, so they cannot become markup."""
    if not found.changes:
        return [f"### Policy {_title(found)}", "", "No changes."]
    serious = [change for change in found.changes if change.severity is not Severity.INFO]
    others = [change for change in found.changes if change.severity is Severity.INFO]
    loosens = found.severity is Severity.CRITICAL
    headline = "**This loosens the policy.**" if loosens else "Nothing is loosened."
    lines = [f"### Policy {_title(found)}", "", f"{headline} {_counts(found)}.", ""]
    if serious:
        lines += [*_table(serious), ""]
    if others:
        lines += [
            f"<details><summary>{len(others)} for information</summary>",
            "",
            *_table(others),
            "",
            "</details>",
            "",
        ]
    old, new = quoted(found.old.policy_hash), quoted(found.new.policy_hash)
    return [
        *lines,
        f"`critical` means looser, `warn` means stricter. policy_hash {old} to {new}",
    ]


def _table(changes: list[Change]) -> list[str]:
    """Returns a table of bounded length: GitHub's comments end at 65,536 characters."""
    rows = [
        f"| {_emphasis(change.severity)} | {_cell(change.rule_id)} | {_escaped(change.summary)} |"
        for change in changes[:MAX_ROWS]
    ]
    header = ["| severity | rule | change |", "|---|---|---|"]
    left_out = len(changes) - MAX_ROWS
    more = ["", f"… and {left_out} more: `sub policy diff` shows all."] if left_out > 0 else []
    return [*header, *rows, *more]


def _title(found: Report) -> str:
    old, new = found.old, found.new
    name = quoted(old.policy_id)
    if old.policy_id != new.policy_id:
        name += f" to {quoted(new.policy_id)}"
    if old.policy_version == new.policy_version:
        return f"{name} {quoted(new.policy_version)}"
    return f"{name} {quoted(old.policy_version)} to {quoted(new.policy_version)}"


def _counts(found: Report) -> str:
    return ", ".join(f"{number} {name}" for name, number in found.counts.items() if number)


def _subject(change: Change) -> str:
    return "" if change.rule_id is None else f"rule {quoted(change.rule_id)}: "


def _cell(rule_id: str | None) -> str:
    return "–" if rule_id is None else _escaped(quoted(rule_id))


def _escaped(text: str) -> str:
    """Escapes `|`, which would end a cell even inside a code span."""
    return text.replace("|", "\\|")


def _emphasis(severity: Severity) -> str:
    return f"**{severity}**" if severity is Severity.CRITICAL else severity.value
