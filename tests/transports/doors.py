"""The doors into the core. Each turns a step into a call in its own protocol, and back.

A new adapter is one more class here and one more name in DOORS; the body stays as it is.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.adapters.policies import snapshot
from tests.adapters.records import events_of
from tests.adapters.wire import Wire, upstream
from tests.hosts import enforcer_in

from subluminal.canonical import args_hash, encode
from subluminal.contracts.call import ToolCall
from subluminal.contracts.vocabulary import ErrorClass, Status, Transport
from subluminal.core.enforcer import Outcome


class Step(NamedTuple):
    """One tool call, and how the server answers it if it gets that far."""

    tool: str
    arguments: dict[str, Any]
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class Door(Protocol):
    """What the body needs of an adapter."""

    def call(self, step: Step) -> str:
        """Makes the call; returns the action, as far as the caller can tell."""

    def events(self) -> list[dict[str, Any]]:
        """Ends the run and returns its record."""


class MockDoor:
    """No protocol at all: what an adapter must do, and nothing else (Pack 7.1)."""

    def __init__(self, home: Path, _place: Path, policy: dict[str, Any]) -> None:
        self._home = home
        rules = policy["rules"]
        self._enforcer = enforcer_in(home, snapshot(*rules, mode=policy["mode"]))

    def call(self, step: Step) -> str:
        call = ToolCall(
            server_name="probe",
            tool_name=step.tool,
            args=step.arguments,
            args_hash=args_hash(step.arguments),
            bytes_in=1,
            transport=Transport.UNKNOWN,
        )
        ruling = self._enforcer.begin(call, encode(step.arguments))
        if ruling.is_allowed:
            self._enforcer.finish(ruling, _outcome(step))
        else:
            codes = {"BLOCK": -32081, "THROTTLE": -32082, "REJECT_WITH_HINT": -32083}
            self._enforcer.finish(
                ruling,
                Outcome(
                    Status.ERROR,
                    1,
                    error_class=ErrorClass.POLICY_BLOCK,
                    error_message=ruling.decision.summary,
                    error_code=codes.get(ruling.decision.action, -32084),
                ),
            )
        return str(ruling.decision.action)

    def events(self) -> list[dict[str, Any]]:
        self._enforcer.flush()
        self._enforcer.run.leave()
        self._enforcer.run.close()
        return events_of(self._home)


def _outcome(step: Step) -> Outcome:
    if step.error is not None:
        code, message = step.error["code"], step.error["message"]
        kind = ErrorClass.UPSTREAM_ERROR
        return Outcome(Status.ERROR, 1, error_class=kind, error_message=message, error_code=code)
    result = json.dumps(step.result).encode()
    if step.result and step.result.get("isError"):
        return Outcome(
            Status.ERROR,
            1,
            result,
            error_class=ErrorClass.UPSTREAM_ERROR,
            error_message="the tool reported an error",
        )
    return Outcome(Status.OK, 1, result)


class StdioDoor:
    """`sub shim stdio` between a client and a server that are real processes."""

    def __init__(self, home: Path, place: Path, policy: dict[str, Any]) -> None:
        self._wire = Wire(upstream("echoer"), home=home, place=place, policy=policy)
        self._id = 0

    def call(self, step: Step) -> str:
        self._id += 1
        answer = {"result": step.result} if step.error is None else {"error": step.error}
        # How the server is to answer goes where no policy and no hash looks.
        params = {"name": step.tool, "arguments": step.arguments, "_meta": {"answer": answer}}
        body = {"jsonrpc": "2.0", "id": self._id, "method": "tools/call", "params": params}
        self._wire.send(json.dumps(body).encode() + b"\n")
        said = self._wire.line()
        assert said["id"] == self._id
        data = said.get("error", {}).get("data", {})
        return str(data["subluminal"]["action"]) if "subluminal" in data else "ALLOW"

    def events(self) -> list[dict[str, Any]]:
        self._wire.finish()
        self._wire.abandon()
        return self._wire.events()


DOORS: dict[str, Callable[[Path, Path, dict[str, Any]], Door]] = {
    "mock": MockDoor,
    "mcp_stdio": StdioDoor,
}
