"""The execution ledger: which intents ran, so that a retry does not run one twice.

An entry is claimed before the handler runs, and done when it has returned. `claim` is exact under
races: of all callers with one hash, one gets None. This file has the protocol and the ledger in
memory; those that outlive a process are elsewhere.
"""

from enum import StrEnum
from typing import Protocol

import msgspec
from msgspec import Struct

from subluminal.errors import SubluminalError


class ExecutionStatus(StrEnum):
    """How far an execution is."""

    CLAIMED = "claimed"
    DONE = "done"
    UNKNOWN = "unknown"
    """its process died, or its handler failed half way: a person must say what happened"""


class LedgerEntry(Struct, frozen=True, rename="camel"):
    """One execution."""

    intent_hash: str
    at: str
    session_id: str
    kind: str
    resource_version: str = ""
    status: ExecutionStatus = ExecutionStatus.CLAIMED


class ExecutionLedger(Protocol):
    """Where executions are kept. A ledger that is out of reach raises: then nothing executes."""

    def check(self, intent_hash: str, /) -> LedgerEntry | None:
        """Returns the entry of a hash, if there is one."""

    def claim(self, entry: LedgerEntry, /) -> LedgerEntry | None:
        """Takes the hash for this entry. Returns None, or the entry that has it already."""

    def finish(self, intent_hash: str, status: ExecutionStatus, /) -> None:
        """Says how a claimed execution ended."""

    def release(self, intent_hash: str, /) -> None:
        """Gives a hash free again: nothing was executed."""


class MemoryExecutionLedger:
    """The ledger of one process. `dict.setdefault` makes a claim atomic between threads."""

    def __init__(self) -> None:
        self._entries: dict[str, LedgerEntry] = {}

    def check(self, intent_hash: str, /) -> LedgerEntry | None:
        return self._entries.get(intent_hash)

    def claim(self, entry: LedgerEntry, /) -> LedgerEntry | None:
        mine = msgspec.structs.replace(entry)  # an object of its own, to tell it from the holder's
        holder = self._entries.setdefault(entry.intent_hash, mine)
        return None if holder is mine else holder

    def finish(self, intent_hash: str, status: ExecutionStatus, /) -> None:
        entry = self._entries.get(intent_hash)
        if entry is None:
            raise SubluminalError(f"`{intent_hash}` was not claimed")
        self._entries[intent_hash] = msgspec.structs.replace(entry, status=status)

    def release(self, intent_hash: str, /) -> None:
        self._entries.pop(intent_hash, None)
