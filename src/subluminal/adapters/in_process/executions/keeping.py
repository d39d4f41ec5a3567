"""What the ledgers of both engines share: rows, who holds a claim, errors, and what a fork does.

A row says `claimed` until its claimant says how the execution ended. If the claimant is gone, the
row is told as `unknown`; each engine knows how to look. Between reading a row and looking, the
claimant may have finished and ended, so an engine reads the row again before it tells `unknown`.
"""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol
from weakref import WeakSet

from msgspec.structs import replace

from subluminal.errors import SubluminalError
from subluminal.kernel.executions import ExecutionLedger, ExecutionStatus, LedgerEntry
from subluminal.state.mutex import Mutex
from subluminal.state.processes import start_time
from subluminal.system.processes import boot_id

KEEP_DAYS = 14
"""Days for which an execution that is done is kept. Others are kept until a person frees them."""
KEEP_MS = KEEP_DAYS * 86_400_000
PRUNE_EVERY_S = 3_600.0
PRUNE_ROWS = 500
"""Most old executions that one claim removes."""
TURN_S = 15.0
"""Longest wait of a thread for other threads of its process. Each of them waits within bounds."""


class ExecutionsUnavailable(SubluminalError):
    """The execution ledger is out of reach, so nothing may execute."""


class Holder(NamedTuple):
    """The process that claimed an execution."""

    host: str
    boot: str
    """name of the boot of that host: pids and start times repeat after a boot"""
    pid: int
    start: int
    """when the process started, in the system's own unit"""

    @property
    def lives(self) -> bool:
        """Whether the process lives on this machine. 0 stands for a start time that is hidden."""
        found = start_time(self.pid) if self.boot == boot_id() else None
        return found is not None and found in (self.start, 0)

    def __str__(self) -> str:
        return f"process {self.pid} on `{self.host}`"


class KeptRow(NamedTuple):
    """One execution, and who claimed it."""

    entry: LedgerEntry
    """the execution; its status is `unknown` if the claimant is gone"""
    holder: Holder

    def effective(self) -> "KeptRow":
        """Returns the row as `unknown` if it is claimed by a process that is gone."""
        if self.entry.status is not ExecutionStatus.CLAIMED or self.holder.lives:
            return self
        return self._replace(entry=replace(self.entry, status=ExecutionStatus.UNKNOWN))


class KeptExecutions(ExecutionLedger, Protocol):
    """A ledger that outlives its process. Every method may raise ExecutionsUnavailable.

    `finish` and `release` are for the process that claimed; `free` is for a person.
    """

    def entries(self, status: ExecutionStatus | None, limit: int, /) -> list[LedgerEntry]:
        """Lists executions, newest first: all of them, or those with one status."""

    def find(self, prefix: str, limit: int, /) -> list[KeptRow]:
        """Lists executions whose hash begins with a prefix."""

    def free(self, intent_hash: str, /) -> KeptRow | None:
        """Removes an execution that is `unknown`; returns None if there is no such execution.

        Returns the row as it is, and removes nothing, if its status is another one.
        """

    def close(self) -> None:
        """Lets go of the file or the connection. A later call opens it again."""


class Shared:
    """A ledger that threads and forked children share: one turn at a time, none across a fork.

    A fork waits for the turn of another thread, so that no child inherits half a transaction.
    """

    def __init__(self) -> None:
        """Call this last: a fork in another thread may drop what the ledger has from here on."""
        self.mutex = Mutex()
        self._me: Holder | None = None
        self._pruned_at = float("-inf")
        _shared.add(self)

    @property
    def me(self) -> Holder:
        """This process as the holder of its claims."""
        if self._me is None:
            pid = os.getpid()
            self._me = Holder(socket.gethostname(), boot_id(), pid, start_time(pid) or 0)
        return self._me

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Lets one thread at a time use the ledger."""
        if not self.mutex.acquire(TURN_S):
            raise ExecutionsUnavailable(
                f"the execution ledger was busy with other threads for {TURN_S:.0f} s",
                hint="try again",
            )
        try:
            yield
        finally:
            self.mutex.release()

    @property
    def is_prune_due(self) -> bool:
        """Whether old executions should be looked for."""
        return time.monotonic() >= self._pruned_at + PRUNE_EVERY_S

    def note_pruned(self, removed: int) -> None:
        """Says how many rows were removed. If there may be more, the next claim goes on."""
        if removed < PRUNE_ROWS:
            self._pruned_at = time.monotonic()

    def drop_inherited(self) -> None:
        """Forgets, in a forked child, what belongs to the parent."""
        self.mutex = Mutex()
        self._me = None


_shared: "WeakSet[Shared]" = WeakSet()


def _hold() -> None:
    for ledger in list(_shared):
        ledger.mutex.acquire(-1)


def _let_go() -> None:
    for ledger in list(_shared):
        ledger.mutex.release()


def _drop_inherited() -> None:
    for ledger in list(_shared):
        ledger.drop_inherited()


os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_drop_inherited)


def kept_row(values: tuple[Any, ...]) -> KeptRow:
    """Makes a row from the columns of a table: entry, status, holder. Raises ValueError."""
    intent_hash, at, session_id, kind, resource_version, status, *holder = values
    state = ExecutionStatus(status)
    return KeptRow(
        LedgerEntry(intent_hash, at, session_id, kind, resource_version, state), Holder(*holder)
    )


def not_mine(intent_hash: str) -> SubluminalError:
    """Returns the error of a process that ends an execution which it has not claimed."""
    return SubluminalError(f"`{intent_hash}` was not claimed by this process")
