"""The three events of every tool call, written as bytes (performance.md 1e).

They live beside the structs of `events` and must give the same JSON: same order, same escapes
(tests/contracts/test_templates.py proves it for all values). Arguments that end in `_json` are
already JSON; the rest are ASCII by contract: timestamps, hashes, members of closed vocabularies.
"""

import msgspec

from subluminal.contracts import PACK_VERSION
from subluminal.contracts.identity import Source, Workload
from subluminal.contracts.vocabulary import EventType

encode_json = msgspec.json.Encoder(decimal_format="number").encode
"""Writes a string, struct or plain value as this module's templates expect it."""

_START = (
    b'"call":{"call_id":"%b",%b,"args_hash":"%b","transport":"%b","bytes_in":%d,"seq":%d%b,'
    b'"preview":{"truncated":%b%b}}}'
)
_DECISION = b'"call":{"call_id":"%b",%b,"args_hash":"%b"},"decision":%b}'
_END = (
    b'"call":{"call_id":"%b",%b,"args_hash":"%b"},"status":"%b","latency_ms":%d,"bytes_out":%d%b,'
    b'"preview":{"truncated":%b%b}}'
)


class EventTemplates:
    """Writes the events of one producer; what never changes is encoded once."""

    def __init__(
        self,
        *,
        run_id: str,
        agent_id: str,
        client: str,
        env: str,
        source: Source,
        principal: str | None = None,
        workload: Workload | None = None,
    ) -> None:
        head = b'{"type":"%b","v":"' + PACK_VERSION.encode() + b'","ts":"'
        self._start = head % EventType.TOOL_CALL_START.encode()
        self._decision = head % EventType.TOOL_CALL_DECISION.encode()
        self._end = head % EventType.TOOL_CALL_END.encode()
        self._who = b"".join(
            [
                b'","run_id":',
                encode_json(run_id),
                b',"agent_id":',
                encode_json(agent_id),
                b',"client":',
                encode_json(client),
                b',"env":',
                encode_json(env),
                b',"source":{"host_id":',
                encode_json(source.host_id),
                b',"proc_id":',
                encode_json(source.proc_id),
                b',"shim_id":',
                encode_json(source.shim_id),
                b',"n":',
            ]
        )
        rest = b'"},'
        if principal is not None:
            rest += b'"principal":' + encode_json(principal) + b","
        if workload is not None:
            rest += b'"workload":' + encode_json(workload) + b","
        self._rest = rest

    def _envelope(self, head: bytes, ts: bytes, n: int, prev: bytes) -> bytes:
        return b'%b%b%b%d,"prev":"%b%b' % (head, ts, self._who, n, prev, self._rest)

    def tool_call_start(
        self,
        ts: bytes,
        n: int,
        prev: bytes,
        *,
        call_id: bytes,
        names_json: bytes,
        args_hash: bytes,
        transport: bytes,
        bytes_in: int,
        seq: int,
        extra_json: bytes,
        truncated: bool,
        preview_json: bytes,
    ) -> bytes:
        """`extra_json` and `preview_json` are empty, or members that each begin with a comma."""
        return self._envelope(self._start, ts, n, prev) + _START % (
            call_id,
            names_json,
            args_hash,
            transport,
            bytes_in,
            seq,
            extra_json,
            b"true" if truncated else b"false",
            preview_json,
        )

    def tool_call_decision(
        self,
        ts: bytes,
        n: int,
        prev: bytes,
        *,
        call_id: bytes,
        names_json: bytes,
        args_hash: bytes,
        decision_json: bytes,
    ) -> bytes:
        """`decision_json` is an encoded DecisionMade; equal decisions share their bytes."""
        return self._envelope(self._decision, ts, n, prev) + _DECISION % (
            call_id,
            names_json,
            args_hash,
            decision_json,
        )

    def tool_call_end(
        self,
        ts: bytes,
        n: int,
        prev: bytes,
        *,
        call_id: bytes,
        names_json: bytes,
        args_hash: bytes,
        status: bytes,
        latency_ms: int,
        bytes_out: int,
        extra_json: bytes,
        truncated: bool,
        preview_json: bytes,
    ) -> bytes:
        """`extra_json` holds error and result_stream_hash; see tool_call_start."""
        return self._envelope(self._end, ts, n, prev) + _END % (
            call_id,
            names_json,
            args_hash,
            status,
            latency_ms,
            bytes_out,
            extra_json,
            b"true" if truncated else b"false",
            preview_json,
        )


def names_json(server_name: str, tool_name: str) -> bytes:
    """The two names as they stand in every event of a call; worth caching per tool."""
    return b'"server_name":%b,"tool_name":%b' % (encode_json(server_name), encode_json(tool_name))
