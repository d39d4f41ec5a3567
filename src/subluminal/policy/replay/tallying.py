"""Counts replayed calls, for `sub policy replay` and for the backtest of a policy change."""

from collections import Counter
from typing import Any, NamedTuple

from subluminal.contracts.vocabulary import Env
from subluminal.counts import counted
from subluminal.policy.replay.comparing import Change, Replayed, change_of
from subluminal.policy.replay.replaying import RunReplay

WRITES = frozenset({"write_like"})
"""Risk classes of calls that write."""


class Tally:
    """The totals of a replay. Its size does not grow with the number of calls."""

    def __init__(self) -> None:
        self.runs = 0
        self.calls = 0
        self.dependent = 0
        self.unrecorded = 0
        self.replaced_others = 0
        """number of runs in which the candidate replaced policies with another policy_id"""
        self.changes: Counter[Change] = Counter()

    def add(self, replayed: Replayed) -> None:
        """Counts one call."""
        self.calls += 1
        self.changes[replayed.change] += 1
        self.dependent += replayed.depends_on is not None

    def add_run(self, replay: RunReplay) -> None:
        """Counts a completed run, and its calls that the record does not contain."""
        self.runs += 1
        self.unrecorded += replay.unrecorded
        self.replaced_others += replay.layering.stands_for_others

    def plain(self) -> dict[str, Any]:
        """Returns what `--json` prints."""
        return {
            "runs": self.runs,
            "calls": self.calls,
            **{change.value: self.changes[change] for change in Change},
            "depending": self.dependent,
            "unrecorded": self.unrecorded,
            "replaced_others": self.replaced_others,
        }


class Group(NamedTuple):
    """A group of calls that a backtest counts together."""

    change: Change
    env: Env
    writes: bool


class Backtest:
    """The effect that a change of policy would have had on past calls."""

    def __init__(self) -> None:
        self.calls = 0
        self.groups: Counter[Group] = Counter()

    def add(self, before: Replayed, after: Replayed) -> None:
        """Counts one call, replayed by the policies before and after the change."""
        self.calls += 1
        was, now = before.now, after.now
        change = Change.UNDETERMINED if was is None else change_of(was, now)
        if change is Change.SAME:
            return
        call = after.call
        classes = call.tags | before.risk_classes | after.risk_classes
        self.groups[Group(change, call.identity.env, not classes.isdisjoint(WRITES))] += 1

    def count(self, change: Change, *, writes: bool = False) -> int:
        """Returns the number of calls with this change; with `writes`, of write calls only."""
        return sum(
            number
            for group, number in self.groups.items()
            if group.change is change and (group.writes or not writes)
        )

    def sentence(self) -> str:
        """Returns words such as `would have allowed 14 past calls, 2 of them writes in prod`."""
        told = [
            self._told("allowed", Change.NEWLY_ALLOWED),
            self._told("refused", Change.NEWLY_BLOCKED),
        ]
        text = " and ".join(each for each in told if each)
        if not text:
            text = f"would have changed nothing for {counted(self.calls, 'past call')}"
        doubtful = self.count(Change.UNDETERMINED)
        if doubtful:
            text += f"; {counted(doubtful, 'call')} cannot be determined: the record is incomplete"
        return text

    def _told(self, verb: str, change: Change) -> str:
        number = self.count(change)
        if not number:
            return ""
        text = f"would have {verb} {counted(number, 'past call')}"
        writes = [
            f"{self.groups[Group(change, env, True)]} of them writes in {env.value}"
            for env in reversed(Env)
            if self.groups[Group(change, env, True)]
        ]
        return ", ".join([text, *writes])

    def plain(self) -> dict[str, Any]:
        """Returns what `--json` prints."""
        return {
            "calls": self.calls,
            "newly_allowed": self.count(Change.NEWLY_ALLOWED),
            "newly_allowed_writes": self._writes(Change.NEWLY_ALLOWED),
            "newly_blocked": self.count(Change.NEWLY_BLOCKED),
            "newly_blocked_writes": self._writes(Change.NEWLY_BLOCKED),
            "changed": self.count(Change.CHANGED),
            "undetermined": self.count(Change.UNDETERMINED),
            "sentence": self.sentence(),
        }

    def _writes(self, change: Change) -> dict[str, int]:
        return {
            group.env.value: number
            for group, number in sorted(self.groups.items())
            if group.change is change and group.writes
        }
