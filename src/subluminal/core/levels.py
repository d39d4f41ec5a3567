"""The level of a run on the path of its calls: lowers it before a call leaves, and says why.

The engine finds what a call lowers the run to, and its updates lower it with all other counters.
This module adds what the engine does not know: since which call, by which tool, and the events.
A call that no rule could judge and that is forwarded all the same lowers the run as far as a rule
about its names may. If another process holds the run's lock meanwhile, the run is lowered without
it (`state.taint`). If there is no state to lower, the caller gets StateUnusable: nothing that may
bring text of strangers leaves without a lower level.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from subluminal.contracts.counters import CellKind, Update
from subluminal.contracts.events import TaintChange, TaintChanged
from subluminal.contracts.vocabulary import TAINT_RANK, Taint, TaintCause
from subluminal.core.runs.run import Run
from subluminal.policy.evaluation import Engine, Evaluation
from subluminal.state.errors import StateBusy, StateUnusable
from subluminal.state.taint import DAMAGED, TaintState

if TYPE_CHECKING:
    from subluminal.contracts.call import ToolCall

_LEVELS = tuple(Taint)
_LOWEST = TAINT_RANK[Taint.UNTRUSTED]
_TAINT = CellKind.TAINT
_UNJUDGED = "no rule could judge the call"
_NAME_CHARS = 100
"""Length of a name in the state's text."""


class CallLevel(NamedTuple):
    """What a call has to do with the level of its run."""

    before: Taint
    """level before the call"""
    change: TaintChange | None = None
    """how the call lowered the run"""


_BEFORE = [CallLevel(level) for level in Taint]


class Levels:
    """The level of one run, as one process sees and lowers it."""

    def __init__(self, run: Run, shown: Callable[[str], str]) -> None:
        """`shown` masks secrets in the name of a tool."""
        self._run = run
        self._shown = shown

    def now(self) -> Taint:
        """Returns the level; UNTRUSTED if nobody can tell. Does not need the lock."""
        try:
            return self._run.state.taint_state().level
        except StateUnusable:
            return Taint.UNTRUSTED

    def before(self) -> CallLevel:
        """Returns the level before a call. Needs the run's lock."""
        word = self._run.state.taint
        rank = word.rank()
        if rank == _LOWEST and word.is_damaged():
            self._mend()
        return _BEFORE[rank]

    def _mend(self) -> None:
        """Says of a damaged level that it is the lowest, once and for all processes."""
        state = self._run.state
        state.taint.mend()
        change = TaintChange(
            from_=Taint.SYSTEM,  # at best: nobody knows
            to=Taint.UNTRUSTED,
            seq=max(0, state.last_seq() - 1),
            by=TaintCause.RULE,
            reason=DAMAGED,
        )
        self._record(change)

    def of_call(
        self,
        engine: Engine,
        call: "ToolCall",
        evaluation: Evaluation,
        updates: list[Update],
        before: CallLevel,
        seq: int,
    ) -> CallLevel:
        """Returns what a call has to do with the level, before `updates` lower the run.

        Writes why they do, and adds to the reason of a refusal since when the run has its level.
        Needs the run's lock.
        """
        held = TAINT_RANK[before.before]
        if held:
            self._explain(engine, evaluation)
        rank = 0
        for kind, _, cell in updates:
            if kind is _TAINT and cell[0] > rank:
                rank = cell[0]
        if rank <= held:
            return before
        rule_id = evaluation.lowered_by
        words = _Words(
            TaintCause.RULE,
            seq=seq,
            rule_id=UNSET if rule_id is None else rule_id,
            server_name=call.server_name,
            tool_name=self._shown(call.tool_name),
            reason=_UNJUDGED if rule_id is None else UNSET,
        )
        change = words.change(held, rank, seq)
        self._note(change)
        return CallLevel(before.before, change)

    def unjudged(
        self,
        engine: Engine,
        call: "ToolCall",
        seq: int,
        *,
        knows_tool: bool = True,
        is_busy: bool = False,
    ) -> CallLevel:
        """Lowers the run for a call that is forwarded although no rule judged it.

        Takes the run's lock, unless it `is_busy`: the caller has waited for it long enough. Raises
        StateUnusable if there is nothing to lower.
        """
        tool_name = call.tool_name if knows_tool else None
        rank = TAINT_RANK[engine.unjudged(call.server_name, tool_name)]
        about = _Words(
            TaintCause.RULE,
            seq=seq,
            server_name=call.server_name,
            tool_name=self._shown(call.tool_name),
            reason=_UNJUDGED,
        )
        change = self._lower_unlocked(rank, about) if is_busy else self._lower(rank, about)
        return CallLevel(self.now()) if change is None else CallLevel(change.from_, change)

    def read_from(self, engine: Engine, server_name: str, method: str) -> None:
        """Lowers the run before text of a server is asked for that no tool gives.

        Raises StateUnusable if there is nothing to lower.
        """
        level, rule_id = engine.read_from(server_name)
        words = _Words(
            TaintCause.RULE,
            rule_id=UNSET if rule_id is None else rule_id,
            server_name=server_name,
            tool_name=method,
        )
        self._record(self._lower(TAINT_RANK[level], words))

    def lower(self, to: Taint, reason: str) -> Taint:
        """Lowers the run as a program says; returns the level from then on.

        Raises StateUnusable if there is nothing to lower.
        """
        words = _Words(TaintCause.SDK, reason=self._shown(reason))
        change = self._lower(TAINT_RANK[to], words)
        self._record(change)
        return self.now() if change is None else change.to

    def _lower(self, rank: int, words: "_Words") -> TaintChange | None:
        """Lowers the run before something leaves; None if it is as low already."""
        if not rank:
            return None
        state = self._run.state
        try:
            with state.locked():
                before = state.taint.rank()
                if rank > before:
                    change = words.change(before, rank, state.last_seq())
                    self._note(change)
                    state.taint.lower(rank)
                    return change
        except StateBusy:
            return self._lower_unlocked(rank, words)
        return None

    def _lower_unlocked(self, rank: int, words: "_Words") -> TaintChange | None:
        """Does the same while another process holds the lock."""
        if not rank:
            return None
        state = self._run.state
        before = state.lower_unlocked(rank)
        return words.change(before, rank, state.last_seq()) if rank > before else None

    def _record(self, change: TaintChange | None) -> None:
        if change is not None:
            self._run.record(lambda: self._run.emit(TaintChanged, taint=change))

    def _explain(self, engine: Engine, evaluation: Evaluation) -> None:
        decision = evaluation.decision
        is_refusal = not evaluation.forwarded or evaluation.would_be is not None
        if is_refusal and engine.tests_taint(decision.rule_id):
            summary = f"{decision.summary}; {since(self._run.state.taint.state())}"
            evaluation.decision = replace(decision, summary=summary)

    def _note(self, change: TaintChange) -> None:
        self._run.state.taint.note(TAINT_RANK[change.to], source_of(change))


class _Words(NamedTuple):
    """What a change of the level is about."""

    by: TaintCause
    seq: int = 0
    """number of the call; 0 if no call changes the level, or nobody could give it a number"""
    rule_id: str | UnsetType = UNSET
    server_name: str | UnsetType = UNSET
    tool_name: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET

    def change(self, before: int, rank: int, last_seq: int) -> TaintChange:
        """Returns the change from one rank to another."""
        return TaintChange(
            from_=_LEVELS[before],
            to=_LEVELS[rank],
            seq=self.seq or last_seq,
            by=self.by,
            rule_id=self.rule_id,
            server_name=self.server_name,
            tool_name=self.tool_name,
            reason=self.reason,
        )


def source_of(change: TaintChange) -> tuple[str, ...]:
    """Returns the words about a change that a run's state keeps."""
    parts = (change.by, change.rule_id, change.server_name, change.tool_name, change.reason)
    return tuple("" if each is UNSET else str(each)[:_NAME_CHARS] for each in parts)


def origin(source: Sequence[str]) -> str:
    """Returns what lowered a run, in a few words; empty if nobody knows."""
    by, _, server_name, tool_name, reason = (*source, "", "", "", "", "")[:5]
    if server_name:
        return f"{server_name}/{tool_name}"
    if by != TaintCause.COMMAND:
        return reason
    return f"sub taint set: {reason}" if reason else "sub taint set"


def since(found: TaintState) -> str:
    """Returns since when a run has its level: `UNTRUSTED since call 4 (web/fetch)`."""
    when = f"call {found.seq}" if found.seq else "the start"
    why = origin(found.source)
    return f"{found.level} since {when}" + (f" ({why})" if why else "")
