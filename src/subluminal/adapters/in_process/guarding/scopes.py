"""Runs that a program opens and closes itself, inside of its process.

The scope is a context variable: threads and tasks that are started in it with a copy of the context
belong to it, others do not. It holds for all guards of the same home: a guard to which work was
delegated acts in the same run.
"""

from contextlib import suppress
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any

from subluminal.contracts.vocabulary import RunStatus
from subluminal.core.host import Host


class ScopedRun:
    """A run from `with` to its end, once. An exception that leaves the block ends it FAILED."""

    def __init__(self, host: Host, run_id: str, meta: dict[str, Any] | None) -> None:
        self._host = host
        self._meta = meta
        self._token: Token[ScopedRun | None] | None = None
        self._hosts = {host}
        """the hosts with calls in the run"""
        self.run_id = run_id

    def run_for(self, host: Host) -> str | None:
        """Returns the run for a call of a host; None if the host has another home."""
        if host not in self._hosts:
            if host.places.home != self._host.places.home:
                return None
            self._hosts.add(host)
        return self.run_id

    def __enter__(self) -> "ScopedRun":
        if self._token is not None:
            raise RuntimeError("this run was entered before: open another one with `guard.run`")
        self._host.open_run(self._meta, self.run_id)
        self._token = current_run.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._token is not None:
            with suppress(ValueError, RuntimeError):  # frameworks may leave in another context
                current_run.reset(self._token)
        for host in list(self._hosts):
            host.end_run(self.run_id, _status(error))

    async def __aenter__(self) -> "ScopedRun":
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)


current_run: ContextVar[ScopedRun | None] = ContextVar("subluminal_run", default=None)
"""The run of the calls that are made here; None for the run of the process."""


def _status(error: BaseException | None) -> RunStatus | None:
    if error is None:
        return None
    return RunStatus.FAILED if isinstance(error, Exception) else RunStatus.CANCELLED
