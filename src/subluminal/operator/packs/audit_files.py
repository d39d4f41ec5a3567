"""Files of audit records, as a kernel's sink wrote them: one JSON object a line, or one array."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from subluminal.errors import InvalidInput, Problem, SubluminalError
from subluminal.kernel import (
    AuditRecord,
    decision_from_audit,
    decode_audit_record,
    verify_audit_record,
)

MAX_BYTES = 256 << 20
"""Most bytes of a file: it is read whole."""


class VerifiedRecord(NamedTuple):
    """Whether a record is as it was written."""

    intent_hash: str
    verified: bool | None
    reason: str | None


def read_records(data: bytes, file: str, *, decided: bool = False) -> list[AuditRecord]:
    """Reads all records. Raises InvalidInput that says where the file is wrong.

    `decided`: whether the decision of every record must be one that the kernel knows.
    """
    if len(data) > MAX_BYTES:
        raise SubluminalError(
            f"`{file}` has more than {MAX_BYTES >> 20} MiB", hint="split it into smaller files"
        )
    found = []
    for line, text in _pieces(data, file):
        try:
            record = decode_audit_record(text)
            if decided:
                decision_from_audit(record)
            found.append(record)
        except SubluminalError as error:
            raise InvalidInput([Problem(str(error), file, line, hint=error.hint)]) from None
    if not found:
        raise InvalidInput([Problem("there is no audit record in it", file)])
    return found


def _pieces(data: bytes, file: str) -> Iterator[tuple[int, bytes]]:
    """Yields every record with its line, or with its place in an array."""
    if not data.lstrip().startswith(b"["):
        for number, line in enumerate(data.split(b"\n"), start=1):
            if line.strip():
                yield number, line.strip()
        return
    try:
        items = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput([Problem(f"not a JSON array: {error}", file)]) from None
    for number, item in enumerate(items, start=1):
        yield number, bytes(item).strip()


def verify_records(records: list[AuditRecord]) -> list[VerifiedRecord]:
    """Derives the hashes of all records again."""
    return [_verified(record) for record in records]


def _verified(record: AuditRecord) -> VerifiedRecord:
    found = verify_audit_record(record)
    return VerifiedRecord(record.intent_hash, found.verified, found.reason)


def member_of(record: AuditRecord, name: str) -> Any:
    """Returns a member of a record's metadata; None if it is absent."""
    return (record.metadata or {}).get(name)
