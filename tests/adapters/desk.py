"""The adapter without a process: takes client lines and server bytes, shows what goes where.

Everything between the loop and the enforcer is the real thing; the loop itself is not here.
"""

import json
from pathlib import Path
from typing import Any

from tests.adapters.records import events_of
from tests.hosts import host_in

from subluminal.adapters.mcp.calls import Calls
from subluminal.adapters.mcp.messages import Other, classify
from subluminal.adapters.mcp.render import Renderer
from subluminal.adapters.mcp.replies import replies_in
from subluminal.adapters.mcp_stdio.server_lines import LineKeeper
from subluminal.contracts.limits import MAX_INSPECT_BYTES
from subluminal.contracts.vocabulary import Transport
from subluminal.core.enforcer import Enforcer
from subluminal.policy.snapshot import Snapshot


class Desk:
    """One client and one server of one run."""

    def __init__(
        self,
        home: Path,
        *policies: Snapshot,
        codes: str = "pack",
        call_timeout_ms: int | None = None,
    ) -> None:
        self.home = home
        self.host = host_in(home, *policies)
        self.host.open_run()
        self.answers: list[bytes] = []
        self.calls = Calls(
            "probe",
            self.host,
            Renderer(codes),
            self._answer,
            transport=Transport.MCP_STDIO,
            call_timeout_ms=call_timeout_ms,
        )
        self._keeper = LineKeeper(MAX_INSPECT_BYTES)

    def client(self, line: bytes) -> bool:
        """Gives a client's line; True if it goes to the server."""
        message = classify(line)
        return isinstance(message, Other) or self.calls.decide(message, len(line))

    def call(self, name: str, arguments: Any = None, id: Any = 1, **params: Any) -> bool:
        """Sends a tools/call."""
        return self.client(call_line(name, arguments, id, **params))

    def server(self, data: bytes) -> None:
        """Gives bytes of the server."""
        for line in self._keeper.feed(data, wanted=self.calls.open > 0):
            for reply in replies_in(line):
                self.calls.replied(reply)

    def answer(self) -> Any:
        """The last message to the client, parsed."""
        return json.loads(self.answers[-1])

    def events(self) -> list[dict[str, Any]]:
        """Leaves the run and returns its events, after checking that the journals are sound."""
        self.calls.record(None)
        self.host.close()
        return events_of(self.home)

    @property
    def enforcer(self) -> Enforcer:
        """The enforcer of the run that calls belong to unless they name another."""
        return self.host._open[self.host.run_id]

    def _answer(self, message: bytes) -> int:
        self.answers.append(message + b"\n")
        return len(message) + 1


def call_line(name: str, arguments: Any = None, id: Any = 1, **params: Any) -> bytes:
    """A tools/call as a line; `id=...` (Ellipsis) makes it a notification."""
    body: dict[str, Any] = {"jsonrpc": "2.0"} if id is ... else {"jsonrpc": "2.0", "id": id}
    body["method"] = "tools/call"
    body["params"] = {"name": name, "arguments": arguments or {}, **params}
    return json.dumps(body).encode() + b"\n"
