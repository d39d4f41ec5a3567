"""What a person sees of an exception before it is written: text, meaning, and past calls."""

import difflib
from typing import Any

import msgspec

from subluminal.cli.output import Output, shown
from subluminal.operator.promoting.past import Past
from subluminal.operator.promoting.planning import Plan
from subluminal.policy.diff.report import Report, as_text, report
from subluminal.policy.diffing import diff

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


class Review:
    """One planned exception, told in full."""

    def __init__(self, file: str, before: bytes, plan: Plan, past: Past) -> None:
        self._file = file
        self._before = before
        self._plan = plan
        self._past = past
        self._report: Report = report(plan.old, plan.new, diff(plan.old, plan.new))

    def show(self, out: Output) -> None:
        """Prints the difference, its severity, and what it would have done."""
        for line in self._lines():
            colour = _COLOURS.get(line[:1])
            out.line(out.paint(shown(line), colour) if colour else shown(line))
        out.line()
        for line in as_text(self._report):
            out.line(shown(line))
        out.line(f"backtest: {self._past.backtest.sentence()}")

    def warn(self, out: Output) -> None:
        """Says what is easily overlooked."""
        plan = self._plan
        if plan.also_passed:
            names = ", ".join(f"`{name}`" for name in plan.also_passed)
            out.warning(
                f"these calls also pass by {names}", "an allow shields from every deny below it"
            )
        for told in self._past.still_refused_by:
            out.warning(f"{told} refuses this call too", "the strictest layer decides")
        if not plan.is_proven:
            out.warning(
                "the arguments are not on record, so that this very call would pass is not proven"
            )

    def plain(self) -> dict[str, Any]:
        """What `--json` prints."""
        found: dict[str, Any] = msgspec.to_builtins(self._report)
        return {
            "file": self._file,
            "rule": self._plan.rule,
            "diff": "".join(f"{line}\n" for line in self._lines()),
            "severity": found["severity"],
            "changes": found["changes"],
            "also_passed": self._plan.also_passed,
            "still_refused_by": self._past.still_refused_by,
            "backtest": self._past.backtest.plain(),
        }

    def _lines(self) -> list[str]:
        before, after = (
            data.decode("utf-8-sig").splitlines() for data in (self._before, self._plan.data)
        )
        lines = difflib.unified_diff(before, after, self._file, self._file, lineterm="")
        return list(lines)
