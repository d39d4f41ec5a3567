"""The doors into the core. Each turns a step into a call in its own protocol, and back.

A new adapter is one more class here and one more name in DOORS; the tests stay as they are.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import pytest
from tests.adapters.records import events_of
from tests.adapters.wire import Wire, upstream

from subluminal import Guard, Refused
from subluminal.canonical import args_hash, encode
from subluminal.config.places import places
from subluminal.contracts.call import ToolCall
from subluminal.contracts.vocabulary import Action, ErrorClass, Status, Transport
from subluminal.core.ruling import CallEnding, Ruling
from subluminal.core.runs.opening import ALONE, Sharing
from subluminal.kernel import (
    IntentEnvelope,
    Pack,
    Plan,
    PolicyBundle,
    static_planner,
    system_taint_policy,
)
from subluminal.sdk import open_kernel
from subluminal.wiring import open_host

WITHIN_S = 30.0
_CODES = {
    Action.BLOCK: -32081,
    Action.THROTTLE: -32082,
    Action.REJECT_WITH_HINT: -32083,
    Action.TERMINATE_RUN: -32084,
}


class Step(NamedTuple):
    """One tool call, and how the server answers it if it gets that far."""

    tool: str
    arguments: dict[str, Any]
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class Answer(NamedTuple):
    """What the caller is told: Contract C's action, and the rest of a refusal."""

    action: str
    refusal: dict[str, Any]


class Door(Protocol):
    """What the tests need of an adapter."""

    def call(self, step: Step) -> Answer:
        """Makes a call and ends it."""

    def close(self) -> None:
        """Ends the door's part in the run."""


class MemoryDoor:
    """No protocol at all: what an adapter must do with a host, and nothing else (Pack 7.1)."""

    sharing = ALONE

    def __init__(self, home: Path, place: Path, policy: Path | None, run_id: str) -> None:
        self._host = open_host(
            places({"SUB_HOME": str(home)}),
            environ={"SUB_RUN_ID": run_id, "SUB_AGENT_ID": os.environ.get("SUB_AGENT_ID", "")},
            cwd=str(place),
            policy=None if policy is None else str(policy),
            sharing=self.sharing,
        )
        self._host.tick(0, force=True)
        self._host.await_policies(WITHIN_S)
        self._host.give_up_waiting()

    def call(self, step: Step) -> Answer:
        self._host.tick(time.monotonic_ns() // 1_000_000)
        return self._call(step)

    def close(self) -> None:
        self._host.close()

    def _call(self, step: Step) -> Answer:
        call = ToolCall(
            server_name="probe",
            tool_name=step.tool,
            args=step.arguments,
            args_hash=args_hash(step.arguments),
            bytes_in=1,
            transport=Transport.UNKNOWN,
        )
        ruling = self._host.begin(call, encode(step.arguments))
        self._host.finish(ruling, _answered(step) if ruling.is_allowed else _refused(ruling))
        self._host.flush()
        decision = ruling.decision
        if ruling.is_allowed:
            return Answer("ALLOW", {})
        hint = decision.hint
        shown = {} if hint is None else {"hint": {"hint_text": hint.hint_text}}
        if hint is not None and hint.suggested_args is not None:
            shown["hint"]["suggested_args"] = hint.suggested_args  # type: ignore[assignment]
        refusal = {"reason_code": str(decision.reason_code), "summary": decision.summary, **shown}
        return Answer(str(decision.action), {**refusal, "call_id": ruling.call_id})


class ThreadedDoor(MemoryDoor):
    """A host that is used from another thread at every call, and that ticks by itself."""

    sharing = Sharing(threads=True)

    def __init__(self, home: Path, place: Path, policy: Path | None, run_id: str) -> None:
        super().__init__(home, place, policy, run_id)
        self._threads = [ThreadPoolExecutor(max_workers=1) for _ in range(4)]
        self._made = 0

    def call(self, step: Step) -> Answer:
        self._made += 1
        thread = self._threads[self._made % len(self._threads)]
        return thread.submit(self._call, step).result(WITHIN_S)

    def close(self) -> None:
        for thread in self._threads:
            thread.shutdown()
        super().close()


class PackDoor:
    """`subluminal.sdk.open_kernel` with a pack that objects to nothing."""

    def __init__(self, home: Path, place: Path, policy: Path | None, run_id: str) -> None:
        kinds = ("read", "put_file", "rm", "rm_rf", "flaky")
        pack = Pack(
            id="probe",
            version="1",
            intents=kinds,
            policy=PolicyBundle((), (), system_taint_policy(()), (), "EXECUTE"),
            planner=static_planner(Plan((), kinds)),
            basis_codes=("none",),
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(place)
            if policy is not None:
                patch.setenv("SUB_POLICY", str(policy))
            self._door = open_kernel(pack, home=str(home), run_id=run_id, executions="off")

    def call(self, step: Step) -> Answer:
        try:
            done = self._door.execute(
                step.tool, step.arguments, state={}, nonce="n", handler=partial(_handled, step)
            )
        except ToolFailed:
            return Answer("ALLOW", {})
        if done.executed:
            return Answer("ALLOW", {})
        hint = {} if done.hint is None else msgspec.to_builtins(done.hint)
        told = {"reason_code": done.reason_code, "call_id": done.call_id, "hint": hint}
        return Answer(str(done.action), {**told, "summary": done.message})

    def close(self) -> None:
        self._door.close()


class GuardDoor:
    """`subluminal.Guard` with a function for each tool, called from an event loop or without one."""

    def __init__(self, home: Path, place: Path, policy: Path | None, run_id: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(place)
            if policy is not None:
                patch.setenv("SUB_POLICY", str(policy))
            self._guard = Guard(home=home, run_id=run_id, server="probe")
        self._made = 0

    def call(self, step: Step) -> Answer:
        self._made += 1
        named = self._guard.tool(name=step.tool, provider="mcp")

        @named
        def run(**arguments: Any) -> Any:
            return _returned(step)

        @named
        async def run_later(**arguments: Any) -> Any:
            return _returned(step)

        try:
            if self._made % 2:
                run(**step.arguments)
            else:
                asyncio.run(run_later(**step.arguments))
        except ToolFailed:
            return Answer("ALLOW", {})
        except Refused as refused:
            decision = refused.decision
            hint = {} if decision.hint is None else msgspec.to_builtins(decision.hint)
            told = {"reason_code": refused.reason_code, "call_id": refused.call_id, "hint": hint}
            told |= {"summary": decision.summary, "message": str(refused)}
            return Answer(str(decision.action), told)
        return Answer("ALLOW", {})

    def close(self) -> None:
        self._guard.close()


class ToolFailed(Exception):
    """The tool of a step reported an error."""

    def __str__(self) -> str:
        return str(self.args[0])


def _handled(step: Step, _envelope: IntentEnvelope) -> dict[str, Any] | None:
    return _returned(step)


def _returned(step: Step) -> dict[str, Any] | None:
    if step.error is not None:
        raise ToolFailed(step.error["message"])
    if step.result and step.result.get("isError"):
        raise ToolFailed("the tool reported an error")
    return step.result


class StdioDoor:
    """`sub shim stdio` between a client and a server that are real processes."""

    def __init__(self, home: Path, place: Path, policy: Path | None, run_id: str) -> None:
        env = {"SUB_RUN_ID": run_id}
        if policy is not None:
            env["SUB_POLICY"] = str(policy)
        self._wire = Wire(upstream("echoer"), home=home, place=place, env=env)
        self._id = 0

    def call(self, step: Step) -> Answer:
        self._id += 1
        answer = {"result": step.result} if step.error is None else {"error": step.error}
        # How the server is to answer goes where no policy and no hash looks.
        params = {"name": step.tool, "arguments": step.arguments, "_meta": {"answer": answer}}
        body = {"jsonrpc": "2.0", "id": self._id, "method": "tools/call", "params": params}
        self._wire.send(json.dumps(body).encode() + b"\n")
        said = self._wire.line()
        assert said["id"] == self._id
        data = said.get("error", {}).get("data", {})
        if "subluminal" not in data:
            return Answer("ALLOW", {})
        told = {**data["subluminal"], "message": said["error"]["message"]}
        return Answer(str(data["subluminal"]["action"]), told)

    def close(self) -> None:
        self._wire.finish()
        self._wire.abandon()


def _answered(step: Step) -> CallEnding:
    if step.error is not None:
        code, message = step.error["code"], step.error["message"]
        kind = ErrorClass.UPSTREAM_ERROR
        return CallEnding(Status.ERROR, 1, error_class=kind, error_message=message, error_code=code)
    result = json.dumps(step.result).encode()
    if step.result and step.result.get("isError"):
        return CallEnding(
            Status.ERROR,
            1,
            result,
            error_class=ErrorClass.UPSTREAM_ERROR,
            error_message="the tool reported an error",
        )
    return CallEnding(Status.OK, 1, result)


def _refused(ruling: Ruling) -> CallEnding:
    return CallEnding(
        Status.ERROR,
        1,
        error_class=ErrorClass.POLICY_BLOCK,
        error_message=ruling.decision.summary,
        error_code=_CODES[ruling.decision.action],
    )


DOORS: dict[str, Callable[[Path, Path, Path | None, str], Door]] = {
    "memory": MemoryDoor,
    "threaded": ThreadedDoor,
    "mcp_stdio": StdioDoor,
    "in_process": PackDoor,
    "guard": GuardDoor,
}


class Doorway:
    """Opens doors of one kind into one home, and ends them with the test."""

    def __init__(self, kind: str, home: Path, place: Path) -> None:
        self._open = DOORS[kind]
        self.kind = kind
        self.home = home
        self._place = place
        self._doors: list[Door] = []

    def __call__(self, policy: dict[str, Any] | str | None, run_id: str = "run-1") -> Door:
        """Opens a door under a policy: a bundle, a file's text as it is, or none."""
        file = None
        if policy is not None:
            file = self.write_policy(policy)
        door = self._open(self.home, self._place, file, run_id)
        self._doors.append(door)
        return door

    def write_policy(self, policy: dict[str, Any] | str) -> Path:
        file = self._place / "policy.json"
        aside = file.with_suffix(".aside")
        aside.write_text(policy if isinstance(policy, str) else json.dumps(policy))
        return aside.replace(file)

    def close(self) -> None:
        while self._doors:
            self._doors.pop().close()

    def events(self) -> list[dict[str, Any]]:
        """Ends all doors and returns the record, proven sound."""
        self.close()
        return events_of(self.home, threads=self.kind == "threaded")
