"""Rule kind `sequence`: refuses the call that completes a pattern of calls. Additive.

The calls that the run has forwarded, and this call at the end, contain the pattern in its order;
others may lie between. For every beginning of the pattern the cell keeps the time of its first
call, the latest that is possible: a later first call is always the better one, because the pattern
must be complete within `within_ms` of it. So the cell is exact, however many calls a run makes.
"""

from typing import Any

from subluminal.contracts.counters import Cell, CellKind
from subluminal.contracts.decision import Decision
from subluminal.contracts.vocabulary import HintKind, ReasonCode
from subluminal.policy.patterns import NameIndex, glob_patterns
from subluminal.policy.rules.entry import Condition, Subject
from subluminal.policy.rules.limit import LimitEntry
from subluminal.policy.visit import Visit

# Looked up once: in Python 3.11 an enum member costs as much as a tuple.
_WINDOW = CellKind.WINDOW
_NEVER = 0
"""Stands for a beginning of the pattern that the run has not made. Times are kept plus one."""


class SequenceEntry(LimitEntry):
    """A `sequence` rule. Its cell has one time for each beginning that is not the whole pattern."""

    __slots__ = ("_is_last", "_key", "_length", "_places", "_sequence", "_within_ms")

    def __init__(
        self, index: int, rule: dict[str, Any], condition: Condition | None, subject: Subject
    ) -> None:
        super().__init__(index, rule, condition, subject)
        self._sequence = sequence = rule["effect"]["sequence"]
        pattern: list[str] = sequence["pattern"]
        self._length = len(pattern)
        found = NameIndex([glob_patterns([glob]) for glob in pattern]).match(subject.tool_name)
        self._is_last = self._length - 1 in found
        self._places = sorted((each for each in found if each < self._length - 1), reverse=True)
        """places of the pattern that this tool can take, but for the last; from the end"""
        self._within_ms: int | None = sequence["within_ms"]
        # A reload may change the pattern, and with it the meaning of the cell.
        part = "sequence " + " ".join(f"{len(glob)}:{glob}" for glob in pattern)
        self._key = subject.counter_key(self.rule_id, self.scope, part)

    def visit(self, visit: Visit) -> Decision | None:
        """Refuses the call if it completes the pattern. It counts if it is forwarded."""
        cell = self.note(visit)
        if not self._is_last or not cell or not self._is_in_time(cell[-1], visit.mono_ms):
            return None
        sequence = self._sequence
        within = "" if self._within_ms is None else f" within {self._within_ms} ms"
        return self.refuse(
            visit,
            sequence["on_match"],
            ReasonCode.SEQUENCE_MATCHED,
            f"this call would complete the pattern {', '.join(sequence['pattern'])}{within}",
            kind=HintKind.SAFETY,
            hint_text=sequence["hint_text"],
            advice="do not retry: this call is refused after the calls before it",
        )

    def note(self, visit: Visit) -> Cell:
        """Counts the call if it is forwarded. Returns the cell before it."""
        if not self._places and not self._is_last:
            return ()
        cell = visit.read(_WINDOW, self._key)
        if self._places:
            starts = list(cell) or [_NEVER] * (self._length - 1)
            for place in self._places:
                starts[place] = starts[place - 1] if place else visit.mono_ms + 1
            new = tuple(starts)
            if new != cell and any(each != _NEVER for each in new):
                visit.if_forwarded.append((_WINDOW, self._key, new))
        return cell

    def _is_in_time(self, start: int, now_ms: int) -> bool:
        if start == _NEVER:
            return False
        within_ms, since_ms = self._within_ms, now_ms - (start - 1)
        # A time far in the future dates from before a restart of the machine.
        return within_ms is None or -within_ms <= since_ms <= within_ms
