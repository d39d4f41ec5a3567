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


class DropSum(Struct):
    """Events that retention dropped for one reason."""

    reason: str
    """age, size, or unknown: before drops were signed"""
    keep_days: int
    """the setting at that time"""
    max_bytes: int
    """the setting at that time"""
    events: int = 0


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
    """events that were dropped; their hashes are still in the chain"""
    drops: list[DropSum] = field(default_factory=list)
    """the dropped events that were due, by reason and setting"""
    anchors: int = 0
    """anchors that the ledger was held to"""
    sealed_shims: int = 0
    """shims whose journal this home sealed"""
    unsealed_shims: int = 0
    """shims whose journal an early version wrote, without a seal"""
    foreign_shims: int = 0
    """shims of other homes, whose seals only they can check"""
    unread_events: int = 0
    """events in journals that the ledger has not read yet"""
    quarantined: int = 0
    """lines that were not events"""
    previews_dropped: int = 0
    """preview texts that retention or a full queue dropped"""
    previews_missing: int = 0
    """preview texts that events name by their hash, and that are not in the ledger"""

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
