"""What the client sends: each line decided, held for a policy, or passed on as it is
(byte-transparent, fast-start).

The loop hands in bytes; what may pass goes to the server's outlet, what is refused is answered.
"""

from typing import Any

from msgspec import UNSET

from subluminal.adapters.mcp import halted
from subluminal.adapters.mcp.calls import Calls
from subluminal.adapters.mcp.messages import (
    Ambiguous,
    Batch,
    CallMessage,
    Cancellation,
    ListRequest,
    Message,
    Other,
    classify,
)
from subluminal.adapters.mcp.render import error_line
from subluminal.adapters.mcp.tool_lists import ToolLists
from subluminal.adapters.mcp_stdio.held import Held
from subluminal.adapters.mcp_stdio.intake import Intake, LargeLine
from subluminal.adapters.mcp_stdio.outlet import ClientOutlet, Outlet
from subluminal.contracts.vocabulary import ErrorCode
from subluminal.core.host import Runs


class Requests:
    """One client's lines on their way to its server."""

    def __init__(
        self,
        runs: Runs,
        calls: Calls,
        tool_lists: ToolLists,
        intake: Intake,
        client: ClientOutlet,
        server: Outlet,
    ) -> None:
        self._runs = runs
        self._calls = calls
        self._tool_lists = tool_lists
        self._intake = intake
        self._client = client
        self._server = server
        self.held = Held()
        self.is_loading = True
        """whether calls are held, as a policy is awaited; changes when the policies are polled"""
        self.asked = False
        """whether anything was sent to the server"""

    def take(self, data: bytes) -> None:
        """Takes what was read: lines that may pass go on together."""
        forward: list[bytes] = []
        for line in self._intake.feed(data):
            if isinstance(line, LargeLine):
                self._server.send(b"".join(forward))
                forward.clear()
                self._take_one(line)
            elif self._decide_line(line):
                forward.append(line)
        if forward:
            self.asked = True
            self._server.send(b"".join(forward) if len(forward) > 1 else forward[0])

    def finish(self) -> None:
        """Takes a last line that no newline ended."""
        for line in self._intake.finish():
            self._take_one(line)

    def let_go(self) -> None:
        """Decides what was held."""
        for line in self.held.let_go():
            self._take_one(line)

    def _decide_line(self, line: bytes) -> bool:
        """Whether a line goes on now; one that has to wait for a policy is held."""
        message = classify(line)
        if type(message) is CallMessage and not self.is_loading:  # as nearly all are
            return self._decide(message, len(line) - line.endswith(b"\n"))
        if isinstance(message, Other):
            if self._calls.halted:
                self._client.inject(halted.answers(line, self._calls.halted))
                return False
            if isinstance(message, ListRequest):
                self._tool_lists.ask(message)
            return True
        if self.is_loading:
            self.held.add(line)
            return False
        return self._decide(message, _size(line))

    def _decide(self, message: Message, size: int) -> bool:
        """A bug on the way to a decision that is on record refuses the call; the stream lives."""
        try:
            if isinstance(message, Cancellation):
                self._tool_lists.cancel(message.request_id)
            return self._calls.decide(message, size)
        except Exception as bug:  # noqa: BLE001 - the adapter's edge
            self._runs.report_bug(bug)
            why = f"a bug in sub kept this call from being recorded: {type(bug).__name__}"
            for request_id in _ids(message):
                self._client.inject(error_line(request_id, ErrorCode.POLICY_BLOCKED, why) + b"\n")
            return False

    def _take_one(self, line: bytes | LargeLine) -> None:
        if isinstance(line, bytes):
            if self._decide_line(line):
                self.asked = True
                self._server.send(line)
        elif self.is_loading:
            self.held.add(line)
        else:
            self._pass_on_large(line)

    def _pass_on_large(self, line: LargeLine) -> None:
        message = line.message()
        if self._calls.decide_large(message, line.size) and not line.overflowed:
            self.asked = True
            self._server.stream(line.spool)
        else:
            line.spool.close()


def _size(line: bytes) -> int:
    return len(line) - line.endswith(b"\n")


def _ids(message: Message) -> list[Any]:
    """Whom to answer if a message cannot be dealt with."""
    if isinstance(message, CallMessage):
        return [] if message.id is UNSET else [message.id]
    return message.ids if isinstance(message, Batch | Ambiguous) else []
