"""What the rules of one layer share while one call passes them, and what they leave behind."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from subluminal.contracts.counters import Cell, CellKind, Update
from subluminal.contracts.events import Trip

if TYPE_CHECKING:
    from subluminal.policy.rules.breaker import BreakerEntry


class Call(NamedTuple):
    """One tool call as a policy sees it. `args` is None where they were too large to inspect."""

    server_name: str
    tool_name: str
    args: dict[str, Any] | None
    args_hash: str
    granted: frozenset[tuple[str, str]] = frozenset()
    """(layer, rule_id) of the rules that a person has let this call pass (D3)"""


class NotInspected(Exception):
    """A rule needs arguments that were too large to read (D6)."""


class Visit:
    """One call on its way through one layer. `read` sees the counters as they were before it."""

    __slots__ = (
        "access_settled",
        "args",
        "args_hash",
        "classes",
        "exempt",
        "granted",
        "grants_used",
        "if_forwarded",
        "mono_ms",
        "read",
        "trips",
        "updates",
        "wall_ms",
        "watches",
    )

    def __init__(
        self, call: Call, read: Callable[[CellKind, bytes], Cell], wall_ms: int, mono_ms: int
    ) -> None:
        self.args = call.args
        self.args_hash = call.args_hash
        self.granted = call.granted
        self.read = read
        self.wall_ms = wall_ms
        self.mono_ms = mono_ms
        self.access_settled = False
        self.exempt = bool(call.granted)
        """a granted call is exempt from dedupe and the repeat breaker (D3)"""
        self.classes: set[str] = set()
        self.updates: list[Update] = []
        self.if_forwarded: list[Update] = []
        self.watches: list[BreakerEntry] = []
        self.trips: list[Trip] = []
        self.grants_used: list[tuple[str, str]] = []
