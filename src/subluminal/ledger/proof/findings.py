"""What a proof found."""

from msgspec import Struct, field

MAX_FINDINGS = 100
"""Past this the ledger is not damaged, it is another file."""


class Finding(Struct, frozen=True):
    """One thing that does not hold."""

    table: str
    row: str
    """which row, in words that `sub query` or SQL find it by"""
    message: str


class Report(Struct):
    """The outcome of a proof."""

    findings: list[Finding] = field(default_factory=list)
    shims: int = 0
    events: int = 0
    calls: int = 0
    checkpoints: int = 0
    unanchored_events: int = 0
    """the tail that no checkpoint signed yet"""
    dropped_events: int = 0
    """removed by retention; their hashes are still in the chain"""
    quarantined: int = 0
    """lines that were no events"""
    previews_dropped: int = 0

    @property
    def holds(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def is_full(self) -> bool:
        return len(self.findings) >= MAX_FINDINGS

    def add(self, table: str, row: str, message: str) -> None:
        if not self.is_full:
            self.findings.append(Finding(table, row, message))
