"""Audit records of the ledger, in the form that a replay takes."""

from collections.abc import Iterable, Iterator

from subluminal.errors import SubluminalError
from subluminal.kernel import AuditRecord, decision_from_audit, decode_audit_record
from subluminal.ledger.query.audits import AuditLine
from subluminal.operator.packs.replaying import Recorded, ReplayRow, Verdict


class RecordedAudits:
    """Yields the records that can be replayed. `unreadable` is complete once all were yielded."""

    def __init__(self, lines: Iterable[AuditLine]) -> None:
        self._lines = lines
        self.unreadable: list[ReplayRow] = []
        """records that are masked beyond reading, or that a newer kernel wrote"""

    def __iter__(self) -> Iterator[Recorded]:
        for line in self._lines:
            record: AuditRecord | None = None
            try:
                record = decode_audit_record(line.record)
                decision_from_audit(record)
            except SubluminalError:
                digest = "" if record is None else record.intent_hash
                row = ReplayRow(digest, line.call_id, Verdict.UNDETERMINED)
                self.unreadable.append(row)
            else:
                yield Recorded(record, line.call_id)
