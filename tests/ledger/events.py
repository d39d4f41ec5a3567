"""Makes journals of calls, quickly enough for a million."""

import os
from hashlib import sha256

import msgspec
from msgspec import UNSET, Raw, UnsetType

from subluminal.clock import rfc3339
from subluminal.contracts.decision import Hint, PolicyRef
from subluminal.contracts.events import (
    AuditRecorded,
    CallRef,
    Event,
    HintedCall,
    HintIssued,
    ListedTool,
    PolicyLoad,
    PolicyLoaded,
    RunEnd,
    RunEnded,
    RunStart,
    RunStarted,
    RunSummary,
    ToolListing,
    ToolsListed,
)
from subluminal.contracts.identity import Source
from subluminal.contracts.templates import EventTemplates, ToolTemplates, encode_json
from subluminal.contracts.vocabulary import Client, Env, HintKind, Layer, Mode, RunStatus
from subluminal.journal import Journal

START_MS = 1_790_000_000_000
POLICY = PolicyRef(policy_id="p", policy_version="1", policy_hash="0" * 64)
TOOLS = [("git", "push"), ("git", "status"), ("fs", "read_file"), ("fs", "write_file")]


def decision_json(
    action: str, rule_id: str | None, reason: str, kernel: dict[str, object] | None = None
) -> bytes:
    extra = b"" if kernel is None else b',"kernel":%b' % encode_json(kernel)
    if action == "REJECT_WITH_HINT":
        extra += (
            b',"hint":{"hint_text":"use a smaller limit","suggested_args":{"limit":10},'
            b'"retry_advice":null,"hint_kind":"ARG_FIX"}'
        )
    return (
        b'{"action":"%b","rule_id":%b,"severity":"info","explain":{"summary":"because",'
        b'"reason_code":"%b"},"policy":%b%b}'
        % (action.encode(), encode_json(rule_id), reason.encode(), encode_json(POLICY), extra)
    )


ALLOW = decision_json("ALLOW", None, "DEFAULT_ALLOW")
BLOCK = decision_json("BLOCK", "no-push", "DENYLIST_MATCH")
HINT = decision_json("REJECT_WITH_HINT", "small", "ARGS")


def judged(kind: str = "EXECUTE", intent_hash: str = "a" * 64, **more: object) -> bytes:
    """A decision with what a pack said: ALLOW for EXECUTE, else BLOCK."""
    kernel = {
        "pack": "pay",
        "version": "1.2.0",
        "fingerprint": "f" * 64,
        "intent_kind": "pay.out",
        "intent_hash": intent_hash,
        "kind": kind,
        "basis": ["business:rule_satisfied"],
        "taint": "UNTRUSTED",
        **more,
    }
    if kind == "EXECUTE":
        return decision_json("ALLOW", None, "DEFAULT_ALLOW", kernel)
    return decision_json("BLOCK", None, str(more.get("refusal_code", kind)), kernel)


def audit_record(nonce: str, principal: str = "llm") -> dict[str, object]:
    """The part of an audit record that the ledger reads."""
    envelope = {"nonce": nonce, "actor": {"principal": principal, "sessionId": "run"}}
    return {"version": 5, "intentHash": "a" * 64, "envelope": envelope}


class Producer:
    """One shim of a run: writes calls to its journal, as the data plane does."""

    def __init__(
        self, root: str, run_id: str = "run", shim_id: str = "shim", **limits: int
    ) -> None:
        self.run_id, self.shim_id = run_id, shim_id
        directory = os.path.join(root, run_id)
        self.journal = Journal(directory, shim_id, **{"max_bytes": 1 << 26, **limits})
        self.source = Source(host_id="host", proc_id="proc", shim_id=shim_id)
        templates = EventTemplates(
            run_id=run_id, agent_id="agent", client="custom", env="dev", source=self.source
        )
        self.tools = [templates.of_tool(*names, "mcp_stdio") for names in TOOLS]
        self.clock_ms = START_MS
        self.calls = 0
        self.padding = ""
        """makes results as large as real ones"""

    def call(self, number: int | None = None, decision: bytes | None = None) -> str:
        """A whole call: start and decision in one flush, the end in another."""
        call_id = self.begin(number, decision)
        self.finish(call_id)
        return call_id

    def begin(
        self,
        number: int | None = None,
        decision: bytes | None = None,
        *,
        text: str | None = None,
        seq: int | None = None,
    ) -> str:
        """A call's start and decision; `number` chooses the tool, and the arguments without text."""
        call_id = self.start(number, text=text, seq=seq)
        self.decide(decision or _decision(self.calls if number is None else number))
        return call_id

    def start(
        self, number: int | None = None, *, text: str | None = None, seq: int | None = None
    ) -> str:
        """A call that is not decided yet; the caller flushes."""
        self.calls += 1
        number = self.calls if number is None else number
        self.clock_ms += 7
        call_id = f"{self.shim_id}-{self.calls:08}"
        text = text or f'{{"path":"/src/file{number}.py","limit":{number}}}'
        tool = self.tools[number % 4]
        args_hash = sha256(text.encode()).hexdigest().encode()
        self._call = (call_id, tool, args_hash)
        shown = preview("args_preview", text)
        sizes = (len(text) + 80, seq or self.calls, self.clock_ms)
        line = tool.start % (*self._place(call_id, args_hash), *sizes, b"", shown)
        # As earlier versions wrote it: the clock of the windows was not on record.
        self.journal.add(line.replace(b',"mono_ms":%d' % self.clock_ms, b"", 1))
        return call_id

    def decide(self, decision: bytes) -> None:
        """Decides the last call, perhaps once more."""
        call_id, tool, args_hash = self._call
        self.journal.add(tool.decision % (*self._place(call_id, args_hash), decision))
        self.journal.flush()

    def finish(self, call_id: str, status: str = "OK") -> None:
        _, tool, args_hash = self._call
        self._finish(tool, args_hash, call_id, status)

    def finish_for(self, first: "Producer", call_id: str, status: str = "OK") -> None:
        """Ends the last call of another shim, which handed it over."""
        begun_by = b',"begun_by":"%b"' % first.shim_id.encode()
        tool = self.tools[first.calls % 4]  # the same tool, in an event of this shim
        self._finish(tool, first._call[2], call_id, status, begun_by)

    def _finish(
        self, tool: ToolTemplates, args_hash: bytes, call_id: str, status: str, extra: bytes = b""
    ) -> None:
        self.clock_ms += 3
        shown = preview("result_preview", f"result of {call_id}, all is well{self.padding}")
        place = self._place(call_id, args_hash)
        self.journal.add(tool.end % (*place, status.encode(), 3, 640, extra, shown))
        self.journal.flush()

    def _place(self, call_id: str, args_hash: bytes) -> tuple[bytes, int, bytes, bytes, bytes]:
        ts = rfc3339(self.clock_ms).encode()
        return ts, self.journal.n, self.journal.prev, call_id.encode(), args_hash

    def run_start(self) -> None:
        at = rfc3339(self.clock_ms)
        run = RunStarted(started_at=at, mode=Mode.GUARDRAILS, policy=POLICY, meta={"issue": 6})
        self._write(RunStart(run=run, **self._envelope(at)))

    def run_end(self, status: RunStatus = RunStatus.SUCCEEDED) -> None:
        at = rfc3339(self.clock_ms)
        summary = RunSummary(
            calls_total=self.calls,
            calls_allowed=self.calls,
            calls_blocked=0,
            calls_throttled=0,
            errors_total=0,
            duration_ms=self.clock_ms - START_MS,
        )
        run = RunEnded(ended_at=at, status=status, summary=summary)
        self._write(RunEnd(run=run, **self._envelope(at)))

    def load_policy(self, policy: PolicyRef, snapshot: bytes | None = None) -> None:
        """Says that a policy came into force."""
        self.clock_ms += 1
        load = PolicyLoad(layer=Layer.USER, ok=True, mode=Mode.GUARDRAILS, file="policy.yaml")
        text: Raw | UnsetType = UNSET if snapshot is None else Raw(snapshot)
        at = rfc3339(self.clock_ms)
        self._write(PolicyLoaded(policy=policy, load=load, snapshot=text, **self._envelope(at)))

    def issue_hint(self, call_id: str, hint_id: str) -> None:
        """Says that a call was given a hint without arguments."""
        hint = Hint(
            hint_text="less", suggested_args=None, retry_advice=None, hint_kind=HintKind.ARG_FIX
        )
        at = rfc3339(self.clock_ms)
        call = HintedCall(call_id=call_id)
        self._write(HintIssued(call=call, hint=hint, hint_id=hint_id, **self._envelope(at)))

    def audit(self, call_id: str, record: object) -> None:
        """Writes an audit record of a call of the kernel."""
        call = CallRef(call_id=call_id, server_name="git", tool_name="push", args_hash="0" * 64)
        text = Raw(encode_json(record))
        at = rfc3339(self.clock_ms)
        self._write(AuditRecorded(call=call, audit=text, **self._envelope(at)))

    def list_tools(self, **definitions: str | None) -> None:
        """Says which tools the server `git` has; a definition's hash is that of its text."""
        self.clock_ms += 1
        tools = [
            ListedTool(name=name, hash=sha256(name.encode()).hexdigest())
            if text is None
            else ListedTool(name=name, hash=sha256(text.encode()).hexdigest(), definition=text)
            for name, text in definitions.items()
        ]
        listing = ToolListing(
            server_name="git", tools=tools, truncated=None in definitions.values()
        )
        self._write(ToolsListed(listing=listing, **self._envelope(rfc3339(self.clock_ms))))

    def write(self, kind: type[Event], at_ms: int, **fields: object) -> None:
        """Any other event, told at this time."""
        self._write(kind(**fields, **self._envelope(rfc3339(at_ms))))

    def _envelope(self, at: str) -> dict[str, object]:
        source = Source(
            host_id="host",
            proc_id="proc",
            shim_id=self.shim_id,
            n=self.journal.n,
            prev=self.journal.prev.decode(),
        )
        return {
            "v": "0.1.0",
            "ts": at,
            "run_id": self.run_id,
            "agent_id": "agent",
            "client": Client.CUSTOM,
            "env": Env.DEV,
            "source": source,
        }

    def _write(self, event: Event) -> None:
        self.journal.add(msgspec.json.encode(event))
        self.journal.flush()

    def close(self) -> None:
        self.journal.close()


def preview(name: str, text: str) -> bytes:
    digest = sha256(text.encode()).hexdigest().encode()
    return b'false,"hash":"%b","%b":%b' % (digest, name.encode(), encode_json(text))


def _decision(number: int) -> bytes:
    if number % 10 == 3:
        return BLOCK
    return HINT if number % 50 == 7 else ALLOW
