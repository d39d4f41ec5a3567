"""The level of a run on the path of its calls: lowers it before a call leaves, and says why.

The engine finds what a call lowers the run to, and its updates lower it with all other counters.
This module adds what the engine does not know: since which call, by which tool, and the events.
A call that no rule could judge and that is forwarded all the same lowers the run as far as a rule
about its names may. If the run's state is out of reach meanwhile, the lowering is owed, and paid
before the next call of this process is decided.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from subluminal.contracts.counters import CellKind, Update
from subluminal.contracts.events import TaintChange, TaintChanged
from subluminal.contracts.vocabulary import TAINT_RANK, Taint, TaintCause
from subluminal.core.runs.run import Run
from subluminal.policy.evaluation import Engine, Evaluation
from subluminal.state.errors import StateBusy, StateUnusable
from subluminal.state.taint import TaintState

if TYPE_CHECKING:
    from subluminal.contracts.call import ToolCall

_LEVELS = tuple(Taint)
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
        self._owed = 0

    def rank(self) -> int:
        """Returns the rank of the level, and pays what is owed. Needs the run's lock."""
        word = self._run.state.taint
        if self._owed:
            if self._owed > word.rank():
                word.note(self._owed, (TaintCause.RULE, "", "", "", _UNJUDGED))
            word.lower(self._owed)
            self._owed = 0
        return word.rank()

    def before(self) -> CallLevel:
        """Returns the level before a call. Needs the run's lock."""
        return _BEFORE[self.rank()]

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
        change = self._change(held, rank, seq, rule_id, call.server_name, call.tool_name)
        self._note(change)
        return CallLevel(before.before, change)

    def unjudged(
        self, engine: Engine, call: "ToolCall", seq: int, *, knows_tool: bool = True
    ) -> CallLevel | None:
        """Lowers the run for a call that is forwarded although no rule judged it.

        Takes the run's lock. Returns None if the state is out of reach.
        """
        rank = TAINT_RANK[engine.unjudged(call.server_name, call.tool_name if knows_tool else None)]
        try:
            with self._run.state.locked():
                before = self.rank()
                if rank <= before:
                    return CallLevel(_LEVELS[before])
                change = self._change(before, rank, seq, None, call.server_name, call.tool_name)
                self._note(change)
                self._run.state.taint.lower(rank)
                return CallLevel(_LEVELS[before], change)
        except (StateBusy, StateUnusable):
            self._owed = max(self._owed, rank)
            return None

    def read_from(self, engine: Engine, server_name: str, method: str) -> None:
        """Lowers the run before text of a server is asked for that no tool gives."""
        level, rule_id = engine.read_from(server_name)
        rank = TAINT_RANK[level]
        if not rank:
            return
        state = self._run.state
        try:
            with state.locked():
                before = self.rank()
                if rank <= before:
                    return
                change = self._change(before, rank, state.last_seq(), rule_id, server_name, method)
                self._note(change)
                state.taint.lower(rank)
        except (StateBusy, StateUnusable):
            self._owed = max(self._owed, rank)
            return
        self._run.record(lambda: self._run.emit(TaintChanged, taint=change))

    def _explain(self, engine: Engine, evaluation: Evaluation) -> None:
        decision = evaluation.decision
        is_refusal = not evaluation.forwarded or evaluation.would_be is not None
        if is_refusal and engine.tests_taint(decision.rule_id):
            summary = f"{decision.summary}; {since(self._run.state.taint.state())}"
            evaluation.decision = replace(decision, summary=summary)

    def _note(self, change: TaintChange) -> None:
        self._run.state.taint.note(TAINT_RANK[change.to], source_of(change))

    def _change(
        self,
        before: int,
        rank: int,
        seq: int,
        rule_id: str | None,
        server_name: str,
        tool_name: str,
    ) -> TaintChange:
        return TaintChange(
            from_=_LEVELS[before],
            to=_LEVELS[rank],
            seq=seq,
            by=TaintCause.RULE,
            rule_id=UNSET if rule_id is None else rule_id,
            server_name=server_name,
            tool_name=self._shown(tool_name),
            reason=_UNJUDGED if rule_id is None else UNSET,
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
    return "sub taint set" if by == TaintCause.COMMAND else reason


def since(found: TaintState) -> str:
    """Returns since when a run has its level: `UNTRUSTED since call 4 (web/fetch)`."""
    when = f"call {found.seq}" if found.seq else "the start"
    why = origin(found.source)
    return f"{found.level} since {when}" + (f" ({why})" if why else "")
