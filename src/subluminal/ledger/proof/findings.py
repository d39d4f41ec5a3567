"""The report of a proof: findings and counts."""

from msgspec import Struct, field

MAX_FINDINGS = 100
"""Stop after this many findings: the file is probably not this ledger at all."""


class Finding(Struct, frozen=True):
    """One row that is not as it should be."""

    table: str
    row: str
    """which row, by names that `sub query` or SQL can find"""
    message: str


class Report(Struct):
    """The result of a proof."""

    findings: list[Finding] = field(default_factory=list)
    shims: int = 0
    events: int = 0
    calls: int = 0
    checkpoints: int = 0
    unanchored_events: int = 0
    """newest events, which no checkpoint has signed yet"""
    dropped_events: int = 0
    """events that retention dropped; their hashes are still in the chain"""
    quarantined: int = 0
    """lines that were not events"""
    previews_dropped: int = 0

    @property
    def holds(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    @property
    def is_full(self) -> bool:
        return len(self.findings) >= MAX_FINDINGS

    def add(self, table: str, row: str, message: str) -> None:
        if not self.is_full:
            self.findings.append(Finding(table, row, message))
