"""One call on its way through the rules of one layer: what the rules share and leave behind."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from subluminal.contracts.counters import Cell, CellKind, Update
from subluminal.contracts.events import Trip


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


class NotInspected(Exception):
    """A rule needs arguments that were too large to inspect (byte-transparent)."""


class Visit(Struct, gc=False):
    """One call on its way through one layer. `read` gives counters as they were before the call."""

    call: Call
    args: dict[str, Any] | None
    read: Callable[[CellKind, bytes], Cell]
    wall_ms: int
    mono_ms: int
    access_settled: bool = False
    """whether an allow or deny rule has matched; later ones are passed over"""
    args_key: bytes = b""
    """first half of counter keys for exactly these arguments; empty until `name_args` runs"""
    classes: frozenset[str] = frozenset()
    """risk classes of the call beyond those that names alone give"""
    updates: list[Update] = []
    """counter updates, whatever the decision"""
    if_forwarded: list[Update] = []
    """counter updates if the call is forwarded"""
    watches: tuple[Any, ...] = ()
    """entries of breakers that count how the call ends"""
    trips: tuple[Trip, ...] = ()
    """breakers that refused the call"""
    grants_used: tuple[tuple[str, str], ...] = ()
    """(layer, rule_id) of the rules that a grant let the call pass"""
    refused_by: Any = None
    """entry of the allow or deny rule that refuses the call; None in observe mode"""

    def name_args(self) -> bytes:
        """Returns the first half of a counter's key for exactly these arguments.

        The second half names the rule. The arguments come first because stores distribute keys
        by their first bytes.
        """
        if self.args is None:
            raise NotInspected
        self.args_key = bytes.fromhex(self.call.args_hash[:32])
        return self.args_key
