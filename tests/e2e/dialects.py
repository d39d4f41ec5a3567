"""The model APIs that the clients speak: how tool results are read, and how an answer is written.

Anthropic's Messages (Claude), OpenAI's Responses (Codex) and Chat Completions (Copilot, opencode),
and Gemini's generateContent. All answers are event streams.
"""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

Body = dict[str, Any]
Event = dict[str, Any]


class ToolCall(NamedTuple):
    """A tool call that the model makes. `server` is empty for a tool of the client itself.

    Both are the names that the server and its configuration use; clients change some characters.
    """

    server: str
    tool: str
    args: dict[str, Any]


Calls = list[tuple[int, ToolCall]]
"""Calls with the numbers that their ids are made of."""


class Dialect(NamedTuple):
    """One model API."""

    results: Callable[[Body], list[str]]
    """reads the tool results of a request, in order"""
    stream: Callable[[Calls, Body], bytes]
    """writes an answer with these calls, or with a text if there are none"""


def dialect_of(path: str) -> Dialect | None:
    """Returns the API that a request's path belongs to; None for other requests."""
    route = path.partition("?")[0]
    return next((dialect for end, dialect in _DIALECTS.items() if route.endswith(end)), None)


def _events(events: list[Event]) -> bytes:
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
    )


def _data_only(events: list[Event]) -> bytes:
    return b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events)


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return str(content)


def _messages_results(body: Body) -> list[str]:
    blocks = [
        block
        for message in body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
    ]
    return [_text_of(b.get("content")) for b in blocks if b.get("type") == "tool_result"]


def _messages(calls: Calls, _: Body) -> bytes:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake"}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    stop = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    blocks = [_message_call(number, call) for number, call in calls]
    if not calls:
        text = {"type": "text_delta", "text": "done"}
        blocks = [({"type": "text", "text": ""}, text)]
    events: list[Event] = [{"type": "message_start", "message": message}]
    for index, (block, delta) in enumerate(blocks):
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    events += [{"type": "message_delta", "delta": stop, "usage": usage}, {"type": "message_stop"}]
    return _events(events)


def _message_call(number: int, call: ToolCall) -> tuple[Event, Event]:
    name = call.tool
    if call.server:
        name = re.sub("[^a-zA-Z0-9_-]", "_", f"mcp__{call.server}__{call.tool}")
    block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
    return block, {"type": "input_json_delta", "partial_json": json.dumps(call.args)}


def _responses_results(body: Body) -> list[str]:
    kinds = ("function_call_output", "custom_tool_call_output")
    return [_text_of(item["output"]) for item in body["input"] if item.get("type") in kinds]


def _responses(calls: Calls, body: Body) -> bytes:
    custom = {tool.get("name") for tool in body["tools"] if tool["type"] == "custom"}
    items = [_response_call(number, call, custom) for number, call in calls]
    if not calls:
        content = [{"type": "output_text", "text": "done"}]
        items = [{"type": "message", "role": "assistant", "id": "m1", "content": content}]
    usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1}
    usage |= {"output_tokens_details": None, "total_tokens": 2}
    done = [
        {"type": "response.output_item.done", "output_index": index, "item": item}
        for index, item in enumerate(items)
    ]
    created = {"type": "response.created", "response": {"id": "r1"}}
    completed = {"type": "response.completed", "response": {"id": "r1", "usage": usage}}
    return _events([created, *done, completed])


def _response_call(number: int, call: ToolCall, custom: set[str | None]) -> Event:
    item: Event = {"id": f"fc_{number}", "call_id": f"call_{number}", "name": call.tool}
    if call.server:
        space, name = (re.sub("[^a-zA-Z0-9_]", "_", each) for each in (call.server, call.tool))
        item |= {"namespace": f"mcp__{space}", "name": name}
    if not call.server and call.tool in custom:  # such a tool takes a text
        return item | {"type": "custom_tool_call", "input": call.args["input"]}
    return item | {"type": "function_call", "arguments": json.dumps(call.args)}


def _chat_results(body: Body) -> list[str]:
    return [_text_of(m["content"]) for m in body["messages"] if m["role"] == "tool"]


def _chat(calls: Calls, body: Body) -> bytes:
    offered = {tool["function"]["name"] for tool in body.get("tools", [])}
    delta: Event = {"role": "assistant", "content": None if calls else "done"}
    if calls:
        delta["tool_calls"] = [
            {
                "index": index,
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": _chat_name(call, offered), "arguments": json.dumps(call.args)},
            }
            for index, (number, call) in enumerate(calls)
        ]
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "fake-model"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    reason = "tool_calls" if calls else "stop"
    first = {"index": 0, "delta": delta, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": reason}
    events = [chunk | {"choices": [first]}, chunk | {"choices": [last], "usage": usage}]
    return _data_only(events) + b"data: [DONE]\n\n"


def _chat_name(call: ToolCall, offered: set[str]) -> str:
    if not call.server:
        return call.tool
    opencode = re.sub("[^a-zA-Z0-9_-]", "_", f"{call.server}_{call.tool}")
    copilot = re.sub("[^a-zA-Z0-9_-]", "-", f"{call.server}-{call.tool}")
    return opencode if opencode in offered else copilot


def _gemini_results(body: Body) -> list[str]:
    parts = [part for content in body["contents"] for part in content.get("parts", [])]
    answers = [p["functionResponse"]["response"] for p in parts if "functionResponse" in p]
    return [str(answer.get("output", answer.get("error"))) for answer in answers]


def _gemini(calls: Calls, _: Body) -> bytes:
    parts: list[Event] = [
        {"functionCall": {"name": _gemini_name(call), "args": call.args}} for _, call in calls
    ]
    content = {"role": "model", "parts": parts or [{"text": "done"}]}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return _data_only([{"candidates": [candidate], "usageMetadata": usage}])


def _gemini_name(call: ToolCall) -> str:
    name = f"mcp_{call.server}_{call.tool}" if call.server else call.tool
    return re.sub("[^a-zA-Z0-9_.-]", "_", name)


_DIALECTS = {
    "/messages": Dialect(_messages_results, _messages),
    "/responses": Dialect(_responses_results, _responses),
    "/chat/completions": Dialect(_chat_results, _chat),
    ":streamGenerateContent": Dialect(_gemini_results, _gemini),
}
"""by the end of the path"""
