"""One guarded call, from its decision to its end, and what is recorded of both."""

import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.json import decode
from msgspec.structs import replace

from subluminal.adapters.in_process.guarding.arguments import Arguments
from subluminal.adapters.in_process.guarding.refused import Refused, refusal_of
from subluminal.adapters.in_process.guarding.shown import shown
from subluminal.adapters.in_process.guarding.steps import run, run_async
from subluminal.adapters.in_process.results import said_by
from subluminal.contracts.call import Given, ToolCall
from subluminal.contracts.decision import Decision
from subluminal.contracts.gate import Settled
from subluminal.contracts.vocabulary import ErrorClass, ReasonCode, Status, Transport
from subluminal.core.host import Host
from subluminal.core.outcomes import given_up, refused
from subluminal.core.ruling import CallEnding, Ruling

if TYPE_CHECKING:
    from subluminal.adapters.in_process.guarding.care import CallCare

TOOL_USE_ID = "subluminal/toolUseId"
"""Member of `_meta` in which an MCP message carries the id of its call."""

_ID = "client_call_id"
# Looked up once: in Python 3.11 access to an enum member costs as much as making a tuple.
_IN_PROCESS, _OK = Transport.IN_PROCESS, Status.OK
_CHANGED = ReasonCode.EVALUATION_ERROR


class Wanted(Struct):
    """A call that a program wants to make."""

    server: str
    tool: str
    arguments: Arguments
    provider: str
    given: Given | None
    client_call_id: str | None = None
    """the id that a framework gave the call"""
    read_again: Callable[[], Arguments] | None = None
    """reads the arguments as they are now; None if the program holds them itself"""

    @property
    def is_changed(self) -> bool:
        """Whether somebody has changed the arguments since they were read, such as in a wait."""
        if self.read_again is None or self.arguments.text is None:
            return False
        return self.read_again().args_hash != self.arguments.args_hash

    def call(self, retry_of: str | None = None, added: Settled | None = None) -> ToolCall:
        """Returns the call as the core takes it. `added` is what plugins say about it."""
        found = self.arguments
        context = {} if self.client_call_id is None else {_ID: self.client_call_id}
        args = found.args
        if retry_of is not None:
            context["retry_of"] = retry_of
            # The refusal had the arguments with it, and a callback may have changed them.
            args = None if found.text is None else decode(found.text)
        return ToolCall(
            server_name=self.server,
            tool_name=self.tool,
            args=args,
            args_hash=found.args_hash,
            bytes_in=found.size,
            transport=_IN_PROCESS,
            provider=self.provider,
            given=self.given,
            context=context,
            added=added,
        )


Begin = Callable[[Wanted, str | None, Settled | None], Ruling]
"""Decides and records a call. Takes the call that it is a further try of, and what plugins say."""


class GuardedCall:
    """A call between its decision and its end. Set `result` before the end, to have it on record.

    `with` and `async with` both begin and end it. The end is OK, ERROR if the block raises, or
    CANCELLED if it is cancelled.
    """

    __slots__ = ("_begin", "_care", "_ruling", "_wanted", "host", "result")

    def __init__(
        self, host: Host, wanted: Wanted, begin: Begin, care: "CallCare | None" = None
    ) -> None:
        self.host = host
        self._wanted = wanted
        self._begin = begin
        self._care = care
        """plugins and waits of the guard; None if it has neither"""
        self._ruling: Ruling | None = None
        self.result: Any = None

    @property
    def ruling(self) -> Ruling:
        """What was decided. Raises RuntimeError if the call has not begun."""
        if self._ruling is None:
            raise RuntimeError("this call has not begun: enter it with `with` or `async with`")
        return self._ruling

    @property
    def call_id(self) -> str:
        """The id of the call in the record."""
        return self.ruling.call_id

    @property
    def decision(self) -> Decision:
        """The decision about the call."""
        return self.ruling.decision

    def offer(self) -> dict[str, str]:
        """Offers the call to a shim behind this program, which then decides and counts nothing.

        Returns the members for `_meta` of the MCP message that carries the call. Call it before
        the message is sent. If a shim takes the call, it records the end, and `end` does nothing.
        """
        call = self.ruling.call
        tool_use_id = call.context.get(_ID) or self.call_id
        self.ruling.call = replace(call, context={**call.context, _ID: tool_use_id})
        self.host.offer(self.ruling)
        return {TOOL_USE_ID: tool_use_id}

    def begin(self, *, waits: bool = True) -> None:
        """Decides and records the call. Raises Refused, or RuntimeError if it was made before.

        If `waits`, it may wait for a person or a rate limit, as the options of the guard say.
        """
        self._begin_once()
        if self._care is None:
            self._ruling = ruling = self._begin(self._wanted, None, None)
            if not ruling.assessment.forwarded:
                raise self.refuse()
        else:
            run(self._care.steps(self, waits=waits))

    def _begin_once(self) -> None:
        """Nothing runs twice on one decision, and nothing at all after a refusal."""
        if self._ruling is not None:
            raise RuntimeError("this call was made already: make another with `guard.call`")

    def decide(self, retry_of: str | None = None, added: Settled | None = None) -> Refused | None:
        """Decides and records one try of the call; returns what to raise if it is refused."""
        self._ruling = ruling = self._begin(self._wanted, retry_of, added)
        return None if ruling.is_allowed else self.refuse()

    def refuse_for(self, reason: ReasonCode, summary: str, refused: Refused) -> Refused:
        """Records a further try of a refused call that is refused for another reason."""
        ruling = self.ruling
        context = {**ruling.call.context, "retry_of": refused.call_id}
        call = replace(ruling.call, context=context, added=None)
        self._ruling = self.host.refuse(call, reason, summary, ruling.run_id, refused.decision)
        return self.refuse()

    def refuse_changed(self) -> Refused:
        """Takes back a call that may pass: its function would get arguments that nobody decided."""
        changed = "its arguments were changed while it was decided"
        self.withdraw(f"not executed: {changed}")
        ruling = self.ruling
        context = {**ruling.call.context, "retry_of": self.call_id}
        call = replace(ruling.call, context=context, added=None)
        self._ruling = self.host.refuse(call, _CHANGED, changed, ruling.run_id)
        return self.refuse()

    def withdraw(self, why: str) -> None:
        """Ends a call that may pass, and is not executed."""
        self.host.finish(self.ruling, given_up(Status.CANCELLED, why))

    def abandon(self, error: BaseException) -> None:
        """Ends a call whose caller gave up; one that has ended stays as it is."""
        self._record(error)

    def refuse(self) -> Refused:
        """Ends a call that was refused; returns what to raise."""
        ruling = self.ruling
        found, decision = refusal_of(ruling, self.host.places), ruling.decision
        self.host.finish(ruling, refused(decision.summary, len(str(found)), decision.action))
        return found

    def end(self, error: BaseException | None) -> None:
        """Records how the call ended, and tells the plugins."""
        if error is None:  # `_record`, inlined for most calls
            seen, ruling = shown(self.result, self.host.looked_at_bytes), self._ruling
            assert ruling is not None
            self.host.finish(ruling, CallEnding(_OK, seen.size, seen.text))
        else:
            self._record(error)
        if self._care is not None:
            run(self._care.ended(self, error))

    async def end_async(self, error: BaseException | None) -> None:
        """Does what `end` does, in a coroutine."""
        self._record(error)
        if self._care is not None:
            await run_async(self._care.ended(self, error))

    def _record(self, error: BaseException | None) -> None:
        if error is None:
            seen = shown(self.result, self.host.looked_at_bytes)
            self.host.finish(self.ruling, CallEnding(_OK, seen.size, seen.text))
        elif _is_cancelled(error):
            self.host.finish(self.ruling, given_up(Status.CANCELLED, said_by(error)))
        else:
            said = said_by(error)
            outcome = CallEnding(
                Status.ERROR,
                0,
                error_class=ErrorClass.UPSTREAM_ERROR,
                error_message=said,
                error_code=type(error).__name__,
            )
            self.host.finish(self.ruling, outcome)

    def __enter__(self) -> "GuardedCall":
        self.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end(error)

    async def __aenter__(self) -> "GuardedCall":
        if self._care is None:
            self.begin()
        else:
            self._begin_once()
            await run_async(self._care.steps(self))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.end_async(error)


def _is_cancelled(error: BaseException) -> bool:
    """Whether an error says that nobody waits any more: a cancelled task, a closed generator."""
    if not isinstance(error, Exception):
        return True
    futures = sys.modules.get("concurrent.futures")
    return futures is not None and isinstance(error, futures.CancelledError)
