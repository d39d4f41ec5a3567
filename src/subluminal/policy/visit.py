"""One call on its way through the rules of one layer: what the rules share and leave behind."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from subluminal.contracts.call import MCP, Given
from subluminal.contracts.counters import Cell, CellKind, Update
from subluminal.contracts.events import Trip
from subluminal.contracts.intents import Judge, Judgement, KernelDecision
from subluminal.contracts.targets import Targets
from subluminal.contracts.vocabulary import DataClass
from subluminal.policy.contents import Texts
from subluminal.policy.refusing import Refuser


class Call(Struct, frozen=True, gc=False):
    """One tool call as a policy sees it. `args` is None if they were too large to inspect."""

    server_name: str
    tool_name: str
    args: dict[str, Any] | None
    args_hash: str
    granted: frozenset[tuple[str, str]] = frozenset()
    """(layer, rule_id) of the rules with `require` for which a person approved this very call"""
    lifted: frozenset[tuple[str, str]] = frozenset()
    """(layer, rule_id) of the allow and deny rules that a person has lifted for the whole run"""
    excused: frozenset[tuple[str, str]] = frozenset()
    """(layer, rule_id) of the limits that a person let this very call pass"""
    targets: Targets | None = None
    """what the call touches; None if nobody read it, which counts as opaque"""
    provider: str = MCP
    """what provides the tool"""
    given: Given | None = None
    """what the program around the call says about it"""
    data: frozenset[DataClass] | None = None
    """classes of data in the arguments; None if nobody looked, which counts as all of them"""
    texts: Texts | None = None
    """values of the arguments, if somebody prepared them; else they are read when a rule asks"""
    judge: Judge | None = None
    """whom `kernel` rules ask; None if there is nobody"""
    judgement: Judgement | None = None
    """what a pack says about the call, whatever the rules say; see `policy.pack_engine`"""


JudgeOf = Callable[[Call, str, int], Judge]
"""Returns the judge of (call, run_id, wall_ms)."""


class NotEvaluated(Exception):
    """A rule could not be evaluated. Its text says why, in half a sentence."""


class NotInspected(NotEvaluated):
    """A rule needs arguments that were too large to inspect (byte-transparent)."""

    def __str__(self) -> str:
        return "the arguments were too large to inspect"


class NotJudged(NotEvaluated):
    """The pack of a `kernel` rule could not be asked."""


class PackMissing(NotJudged):
    """The pack is not installed, or not as the policy was compiled with it."""


class Visit(Struct, gc=False):
    """One call on its way through one layer. `read` gives counters as they were before the call."""

    call: Call
    args: dict[str, Any] | None
    read: Callable[[CellKind, bytes], Cell]
    wall_ms: int
    mono_ms: int
    access_settled: bool = False
    """whether an allow or deny rule has matched; later ones are passed over"""
    args_key: int = 0
    """the beginning of args_hash; 0 until `repeat_key` needs it"""
    classes: frozenset[str] = frozenset()
    """risk classes of the call beyond those that names alone give"""
    updates: list[Update] = []
    """counter updates, whatever the decision"""
    if_forwarded: list[Update] = []
    """counter updates if the call is forwarded"""
    if_refused: list[Update] = []
    """counter updates if the call is not forwarded"""
    taint_settled: bool = False
    """whether a taint rule has matched; later ones are passed over"""
    lowered_by: str | None = None
    """the taint rule that lowers the run, if the call is forwarded"""
    watches: tuple[Any, ...] = ()
    """entries of breakers that count how the call ends"""
    trips: tuple[Trip, ...] = ()
    """breakers that refused the call"""
    grants_used: tuple[tuple[str, str], ...] = ()
    """(layer, rule_id) of the rules that a grant let the call pass"""
    refused_by: Refuser | None = None
    """rule or pack that refuses the call, if a grant can cover that; None in observe mode"""
    kernel: KernelDecision | None = None
    """decision of the pack that objected, else of the first that a `kernel` rule asked"""
    texts: Texts | None = None
    """values of the call, once a rule has asked for them"""
    limited_by: tuple[tuple[str, str], ...] = ()
    """(layer, rule_id) of the limits that refuse the call; none in observe mode"""

    def texts_of(self, args: dict[str, Any]) -> Texts:
        """Returns the values of the call, which all rules share."""
        texts = self.texts
        if texts is None:
            given = self.call.given
            texts = self.call.texts or Texts(args, None if given is None else given.user_input)
            self.texts = texts
        return texts

    def repeat_key(self, rule_key: bytes, mask: int) -> bytes:
        """Returns the key of a counter for exactly these arguments. `mask` is `rule_key` as int.

        Raises NotInspected if the arguments were not read. Stores distribute keys by their first
        bytes, so these depend on the arguments and on the rule: otherwise all rules about one call
        would share a place.
        """
        args_key = self.args_key
        if not args_key:
            if self.args is None:
                raise NotInspected
            self.args_key = args_key = int(self.call.args_hash[:32], 16)
        return (args_key ^ mask).to_bytes(16, "big") + rule_key
