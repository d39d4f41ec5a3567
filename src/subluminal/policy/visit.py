"""What the rules of one layer share while one call passes them, and what they leave behind."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from subluminal.contracts.counters import Cell, CellKind, Update
from subluminal.contracts.events import Trip


class Call(Struct, frozen=True, gc=False):
    """One tool call as a policy sees it. `args` is None where they were too large to inspect."""

    server_name: str
    tool_name: str
    args: dict[str, Any] | None
    args_hash: str
    granted: frozenset[tuple[str, str]] = frozenset()
    """(layer, rule_id) of the asking rules that a person has let this very call pass (no-call-waits)"""
    lifted: frozenset[tuple[str, str]] = frozenset()
    """(layer, rule_id) of access rules, asking or not, that a person has lifted for the run"""


class NotInspected(Exception):
    """A rule needs arguments that were too large to read (byte-transparent)."""


class Visit(Struct, gc=False):
    """One call on its way through one layer. `read` sees the counters as they were before it."""

    call: Call
    args: dict[str, Any] | None
    read: Callable[[CellKind, bytes], Cell]
    wall_ms: int
    mono_ms: int
    access_settled: bool = False
    args_key: bytes = b""
    """half of args_hash, once a rule has asked for it (`name_args`)"""
    classes: frozenset[str] = frozenset()
    """risk classes beyond those that names alone give"""
    updates: list[Update] = []
    if_forwarded: list[Update] = []
    watches: tuple[Any, ...] = ()
    """breaker entries that want to know how the call ends"""
    trips: tuple[Trip, ...] = ()
    grants_used: tuple[tuple[str, str], ...] = ()
    refused_by: Any = None
    """the access entry that refuses the call, where that is enforced: a grant may help"""

    def name_args(self) -> bytes:
        """The first half of the key of what a rule remembers about exactly these arguments.

        It comes first because stores spread keys by their first bytes; the rule's half follows.
        """
        if self.args is None:
            raise NotInspected
        self.args_key = bytes.fromhex(self.call.args_hash[:32])
        return self.args_key
