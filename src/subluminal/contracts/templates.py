"""Byte templates for the three events of every tool call: faster than encoding structs.

INVARIANT: a template gives the same bytes as its struct in `events`, with the same order and
escapes. A property test compares the two (tests/contracts/test_templates.py).
Values whose name ends in `_json` are JSON already. All others are ASCII by contract: timestamps,
hashes, members of closed vocabularies.
"""

from typing import NamedTuple

import msgspec

from subluminal.contracts import PACK_VERSION
from subluminal.contracts.identity import Source, Workload
from subluminal.contracts.vocabulary import EventType

encode_json = msgspec.json.Encoder(decimal_format="number").encode
"""Writes a string, a struct or plain data as the templates expect it."""


class ToolTemplates(NamedTuple):
    """The events of one tool's calls, as `template % values`.

    The values are what differs between calls. They begin with ts, n, prev, call_id, args_hash.
    `extra_json` is empty, or members that each begin with a comma. `preview_json` is `true` or
    `false`, for `truncated`, followed by such members.
    """

    start: bytes
    """further values: bytes_in, seq, mono_ms, extra_json, preview_json"""
    decision: bytes
    """further value: the encoded DecisionMade"""
    end: bytes
    """further values: status, latency_ms, bytes_out, extra_json, preview_json"""


class EventTemplates:
    """Makes the templates for the events of one shim."""

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
        who = [
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
        rest = b'"},'
        if principal is not None:
            rest += b'"principal":' + encode_json(principal) + b","
        if workload is not None:
            rest += b'"workload":' + encode_json(workload) + b","
        self._who = _literal(b"".join(who))
        self._rest = _literal(rest)

    def of_tool(self, server_name: str, tool_name: str, transport: str) -> ToolTemplates:
        """Returns the templates for one tool's calls over one transport. Cache the result."""
        names = _literal(
            b'"server_name":%b,"tool_name":%b' % (encode_json(server_name), encode_json(tool_name))
        )
        call = b'"call":{"call_id":"%b",' + names + b',"args_hash":"%b"'
        preview = b'%b,"preview":{"truncated":%b}}'
        return ToolTemplates(
            start=self._envelope(EventType.TOOL_CALL_START)
            + call
            + b',"transport":"'
            + transport.encode()
            + b'","bytes_in":%d,"seq":%d,"mono_ms":%d'
            + preview
            + b"}",
            decision=self._envelope(EventType.TOOL_CALL_DECISION) + call + b'},"decision":%b}',
            end=self._envelope(EventType.TOOL_CALL_END)
            + call
            + b'},"status":"%b","latency_ms":%d,"bytes_out":%d'
            + preview,
        )

    def _envelope(self, kind: EventType) -> bytes:
        head = b'{"type":"%b","v":"%b","ts":"' % (kind.encode(), PACK_VERSION.encode())
        return head + b"%b" + self._who + b'%d,"prev":"%b' + self._rest


def _literal(text: bytes) -> bytes:
    """Escapes `%` so that text stands for itself in a template."""
    return text.replace(b"%", b"%%")
