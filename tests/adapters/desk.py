"""The adapter without a process: client lines and server bytes in, what goes where out.

Everything between the loop and the enforcer is the real thing; the loop itself is not here.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.adapters.records import events_of

from subluminal.adapters.mcp.calls import Calls
from subluminal.adapters.mcp.messages import Other, classify
from subluminal.adapters.mcp.render import Renderer
from subluminal.adapters.mcp.replies import replies_in
from subluminal.adapters.mcp_stdio.server_lines import LineKeeper
from subluminal.config.settings import RedactSettings
from subluminal.contracts.identity import Identity, Source
from subluminal.contracts.limits import MAX_INSPECT_BYTES, MAX_PREVIEW_BYTES
from subluminal.contracts.vocabulary import Layer
from subluminal.core.enforcer import Enforcer
from subluminal.core.records.previews import Previewer
from subluminal.core.records.redaction.redactor import redactor_for
from subluminal.core.runs.ids import uuid7
from subluminal.core.runs.run import Run
from subluminal.journal import Journal
from subluminal.policy.evaluation import Engine
from subluminal.policy.snapshot import Snapshot
from subluminal.state.run_state import RunState


def previewer() -> Previewer:
    return Previewer(
        redactor_for(RedactSettings()),
        record_mode="metadata",
        max_bytes=MAX_PREVIEW_BYTES,
        full_bytes=MAX_INSPECT_BYTES,
    )


def enforcer_in(home: Path, *policies: Snapshot, run_id: str = "run-1") -> Enforcer:
    """An enforcer with a journal and a state of its own, as a shim has."""
    shim_id = uuid7()
    run = Run(
        run_id,
        Identity(),
        Source(host_id="host", proc_id="proc", shim_id=shim_id),
        RunState.open(str(home / "state"), run_id),
        Journal(str(home / "journal" / run_id), shim_id, max_bytes=1 << 26),
    )
    engine = Engine([(Layer.REPOSITORY, policy) for policy in policies], Identity())
    enforcer = Enforcer(run, engine, previewer())
    run.enter(engine.mode, engine.policy)
    return enforcer


class Desk:
    """One client and one server of one run."""

    def __init__(
        self,
        home: Path,
        *policies: Snapshot,
        codes: str = "pack",
        call_timeout_ms: int | None = None,
        enforcer_of: Callable[[dict[str, Any]], Enforcer] | None = None,
    ) -> None:
        self.home = home
        self.enforcer = enforcer_in(home, *policies)
        self.answers: list[bytes] = []
        self.calls = Calls(
            "probe",
            enforcer_of or (lambda _meta: self.enforcer),
            Renderer(codes),
            self.answers.append,
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
        """Gives bytes of the server's."""
        for line in self._keeper.feed(data, wanted=self.calls.open > 0):
            for reply in replies_in(line):
                self.calls.replied(reply)

    def answer(self) -> Any:
        """The last thing that the client was told, parsed."""
        return json.loads(self.answers[-1])

    def events(self) -> list[dict[str, Any]]:
        """Leaves the run and returns its record, proven sound."""
        self.calls.record(None)
        self.enforcer.flush()
        self.enforcer.run.leave()
        self.enforcer.run.close()
        return events_of(self.home)


def call_line(name: str, arguments: Any = None, id: Any = 1, **params: Any) -> bytes:
    """A tools/call as a line; `id=...` (Ellipsis) makes it a notification."""
    body: dict[str, Any] = {"jsonrpc": "2.0"} if id is ... else {"jsonrpc": "2.0", "id": id}
    body["method"] = "tools/call"
    body["params"] = {"name": name, "arguments": arguments or {}, **params}
    return json.dumps(body).encode() + b"\n"
