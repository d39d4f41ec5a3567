"""The client's lines on their way to the server: decided, held for a policy, or passed on.

The loop hands in bytes. Lines that may pass go to the server's outlet, unchanged; calls that are
refused are answered.
"""

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from subluminal.adapters.mcp.calls import Calls
from subluminal.adapters.mcp.introduction import introduced_as
from subluminal.adapters.mcp.messages import (
    Ambiguous,
    Batch,
    CallMessage,
    Cancellation,
    ListRequest,
    Message,
    Other,
    ReadRequest,
    classify,
)
from subluminal.adapters.mcp.render import INTERNAL_ERROR, error_message, undelivered_answers
from subluminal.adapters.mcp.tool_lists import ToolLists
from subluminal.adapters.mcp_stdio.client_lines import LargeLine, LineSplitter
from subluminal.adapters.mcp_stdio.outlet import ClientOutlet, Outlet
from subluminal.core.host import Host

HOLD_MS = 5_000
"""Longest time that calls wait for the first policy; then they are refused until it is ready."""


_UNREACHABLE = "the server no longer reads its input; restart it from the client"


class Held:
    """Lines waiting for the first policy to compile, in arrival order, with their deadline."""

    def __init__(self) -> None:
        self._lines: list[bytes | LargeLine] = []
        self._until_ms = 0
        self.size = 0
        """size of the lines that are held in memory, in bytes"""

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, line: bytes | LargeLine) -> None:
        """Holds one more line."""
        self._lines.append(line)
        self.size += len(line) if isinstance(line, bytes) else 0

    def may_wait(self, now_ms: int) -> bool:
        """Returns True until the deadline; the first call of this method sets the deadline."""
        self._until_ms = self._until_ms or now_ms + HOLD_MS
        return now_ms < self._until_ms

    def let_go(self) -> list[bytes | LargeLine]:
        """Returns all lines, to be decided now, and forgets them."""
        lines, self._lines, self.size, self._until_ms = self._lines, [], 0, 0
        return lines

    def drop(self) -> None:
        """Forgets all lines: a call that was not decided must not be forwarded."""
        for line in self.let_go():
            if isinstance(line, LargeLine):
                line.spool.close()


class Requests:
    """Decides the client's lines, and sends those that may pass to the server."""

    def __init__(
        self,
        host: Host,
        calls: Calls,
        tool_lists: ToolLists,
        splitter: LineSplitter,
        client: ClientOutlet,
        server: Outlet,
        meet: Callable[[str | None], None],
    ) -> None:
        """`meet` is called with the client's name once it is known, and None if it has none."""
        self._meet = meet
        self._is_met = False
        """whether the client has introduced itself, or has made its first call without that"""
        self._host = host
        self._calls = calls
        self._tool_lists = tool_lists
        self._splitter = splitter
        self._client = client
        self._server = server
        self.held = Held()
        self.is_loading = True
        """whether calls are held because a first policy is still being compiled"""
        self.asked = False
        """whether anything was sent to the server yet"""

    def take(self, data: bytes) -> None:
        """Takes bytes that were read; sends the lines that may pass, in one write."""
        forward: list[bytes] = []
        for line in self._splitter.feed(data):
            if isinstance(line, LargeLine):
                self._send(forward)
                forward = []
                self._take_one(line)
            elif self._decide_line(line):
                forward.append(line)
        self._send(forward)

    def _send(self, lines: list[bytes]) -> None:
        """Sends lines to the server. Refuses their calls if the server no longer reads."""
        if not lines:
            return
        self.asked = True
        self._server.send(b"".join(lines) if len(lines) > 1 else lines[0])
        if self._server.broken:
            self._not_delivered(lines)

    def finish(self) -> None:
        """Takes a last line without a newline, at the end of input."""
        for line in self._splitter.finish():
            self._take_one(line)

    def let_go(self) -> None:
        """Decides the lines that were held."""
        for line in self.held.let_go():
            self._take_one(line)

    def look_at(self, line: bytes, *, is_call: bool = False) -> None:
        """Looks for the client's name in one of its first lines."""
        name = introduced_as(line)
        self._is_met = name is not None or is_call
        self._meet(name)

    def _decide_line(self, line: bytes) -> bool:
        """Returns True if a line may be sent now; holds it if it must wait for a policy."""
        message = classify(line)
        if not self._is_met:
            self.look_at(line, is_call=not isinstance(message, Other))
        if type(message) is CallMessage and not self.is_loading:  # nearly all lines
            return self._decide(message, len(line) - line.endswith(b"\n"))
        if isinstance(message, Other) and not isinstance(message, ReadRequest):
            return self._decide_other(line, message)
        if self.is_loading:
            self.held.add(line)
            return False
        if isinstance(message, ReadRequest):
            return self._decide_other(line, message)
        return self._decide(message, _size(line))

    def _decide_other(self, line: bytes, message: Other) -> bool:
        """Decides a line that is not a call: answers it if the server must not get it."""
        why = self._calls.halted or self._calls.unreachable
        if isinstance(message, ReadRequest) and not why:
            why = self._read_text(message)
        if why:
            for answer in undelivered_answers(line, why):
                self._client.answer(answer)
            return False
        if isinstance(message, ListRequest):
            self._tool_lists.ask(message)
        return True

    def _read_text(self, message: ReadRequest) -> str:
        """Lowers the run, if a rule says so; returns why the request must not go on, or nothing."""
        try:
            why = self._calls.read_text(message.method, message.meta)
        except Exception as bug:  # noqa: BLE001 - the adapter's edge
            self._host.report_bug(bug)
            return f"a bug in sub kept this request from being recorded: {type(bug).__name__}"
        if why:
            self._host.health("degraded", detail=f"`{message.method}` was refused: {why}")
        return why

    def _decide(self, message: Message, size: int) -> bool:
        """Decides a message. A bug in Subluminal refuses the call; the stream goes on."""
        try:
            if isinstance(message, Cancellation):
                self._tool_lists.cancel(message.request_id)
            return self._calls.decide(message, size)
        except Exception as bug:  # noqa: BLE001 - the adapter's edge
            self._host.report_bug(bug)
            self._refuse_unhandled(bug, _ids(message), size)
            return False

    def _refuse_unhandled(self, bug: Exception, ids: list[Any], size: int) -> None:
        why = f"a bug in sub kept this call from being recorded: {type(bug).__name__}"
        try:
            self._calls.refuse_unhandled(ids, size, why)
        except Exception:  # noqa: BLE001 - the same bug: it cannot even be recorded
            for request_id in ids:
                self._client.answer(error_message(request_id, INTERNAL_ERROR, why))

    def _not_delivered(self, lines: list[bytes]) -> None:
        """Refuses the calls in lines that the server did not read, and all later calls."""
        if self._calls.halted:
            return  # the server was stopped, and its calls are answered when it is gone
        self._calls.unreachable = _UNREACHABLE
        for line in lines:
            self._calls.refuse_undelivered(_ids(classify(line)), _UNREACHABLE)

    def _take_one(self, line: bytes | LargeLine) -> None:
        if isinstance(line, bytes):
            if self._decide_line(line):
                self._send([line])
            return
        if not self._is_met:
            self.look_at(b"", is_call=True)
        if self.is_loading:
            self.held.add(line)
        else:
            self._pass_on_large(line)

    def _pass_on_large(self, line: LargeLine) -> None:
        message = line.message()
        ids = [] if message.id is UNSET else [message.id]
        try:
            is_passed_on = self._calls.decide_large(message, line.size) and not line.overflowed
        except Exception as bug:  # noqa: BLE001 - the adapter's edge
            self._host.report_bug(bug)
            self._refuse_unhandled(bug, ids, line.size)
            is_passed_on = False
        if not is_passed_on:
            line.spool.close()
            return
        self.asked = True
        self._server.stream(line.spool)
        if self._server.broken and not self._calls.halted:
            self._calls.unreachable = _UNREACHABLE
            self._calls.refuse_undelivered(ids, _UNREACHABLE)


def _size(line: bytes) -> int:
    return len(line) - line.endswith(b"\n")


def _ids(message: Message) -> list[Any]:
    """Returns the ids that need an answer if a message cannot be handled."""
    if isinstance(message, CallMessage):
        return [] if message.id is UNSET else [message.id]
    return message.ids if isinstance(message, Batch | Ambiguous) else []
