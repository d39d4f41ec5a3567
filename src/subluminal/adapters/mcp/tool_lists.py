"""Records the tools that a server offers: the answers to `tools/list`, after they were forwarded.

Remembers requests, keeps their answers until the loop is idle, and hands them to the host. Requests
in a batch are ignored, and so are answers that cannot be read.
"""

from collections import deque
from typing import Any

from subluminal.adapters.mcp.messages import ListRequest, id_key
from subluminal.adapters.mcp.replies import Reply
from subluminal.canonical import AmbiguousJSON, encode, parse
from subluminal.core.host import Host
from subluminal.core.records.listings import Definition

MAX_ASKED = 64
"""Most requests that are remembered until their answer comes; past it, the oldest is forgotten."""

MAX_WAITING = 8
"""Most answers that wait for the loop to be idle; past it, the oldest is recorded at once."""


class ToolLists:
    """The `tools/list` requests of one server and their answers."""

    def __init__(self, server_name: str, host: Host) -> None:
        self._server_name = server_name
        self._host = host
        self.asked: dict[tuple[bool, Any], str] = {}
        """the page that each unanswered request asks for"""
        self.waiting: deque[tuple[str, bytes | None]] = deque()
        """answers that are not yet recorded"""

    def ask(self, request: ListRequest) -> None:
        """Remembers a request."""
        if len(self.asked) >= MAX_ASKED:
            del self.asked[next(iter(self.asked))]
        self.asked[id_key(request.id)] = request.cursor

    def cancel(self, request_id: Any) -> None:
        """Forgets a cancelled request, which may never be answered."""
        if self.asked:
            self.asked.pop(id_key(request_id), None)

    def replied(self, reply: Reply) -> None:
        """Keeps a reply if it answers a request that is remembered."""
        cursor = self.asked.pop(id_key(reply.id), None)
        if cursor is None or reply.is_error:
            return
        self.waiting.append((cursor, reply.result))
        if len(self.waiting) > MAX_WAITING:
            self._record_oldest()

    def record(self) -> None:
        """Records the answers that wait."""
        while self.waiting:
            self._record_oldest()

    def _record_oldest(self) -> None:
        cursor, result = self.waiting.popleft()
        tools = None if result is None else tools_in(result)
        if result is None or tools is not None:
            self._host.list_tools(self._server_name, cursor, tools)


def tools_in(result: bytes) -> list[Definition] | None:
    """Returns the tools in an answer, in order; None if it is not the result of a `tools/list`."""
    try:
        document = parse(result)
        value = document.value
        tools = value.get("tools") if isinstance(value, dict) else None
        if not isinstance(tools, list):
            return None
        return [
            Definition(each["name"], encode(each, plain=document.plain))
            for each in tools
            if isinstance(each, dict) and isinstance(each.get("name"), str)
        ]
    except AmbiguousJSON:
        return None
