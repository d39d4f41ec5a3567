"""A billing agent with Anthropic's tool runner. Without `http_client`, it talks to a real model."""

import asyncio
import json
from typing import Any

import httpx2
from anthropic import Anthropic, AsyncAnthropic, beta_async_tool, beta_tool
from billing import close_account, first_calls, next_calls, refund, run

from subluminal import Guard
from subluminal.integrations.anthropic import guarded

ASK: dict[str, Any] = {"model": "scripted", "max_tokens": 500}


def respond(request: httpx2.Request) -> httpx2.Response:
    """Reads what the model is shown, and returns what it does, as the API would."""
    sent = json.loads(request.content)
    content = sent["messages"][-1]["content"]
    results = [each for each in content if isinstance(each, dict) and "tool_use_id" in each]
    if results:
        shown = [(each["tool_use_id"].split("_", 2)[2], _text(each["content"])) for each in results]
        calls, said = next_calls(shown), "; ".join(text for _, text in shown)
    else:
        calls, said = first_calls(_text(content)), ""
    blocks: list[dict[str, Any]] = [
        {"type": "tool_use", "id": f"toolu_{n}_{tool}", "name": tool, "input": args}
        for n, (tool, args) in enumerate(calls)
    ] or [{"type": "text", "text": said}]
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": blocks,
        "stop_reason": "tool_use" if calls else "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    if sent.get("stream"):
        text = "".join(_event(each) for each in _events(message, blocks))
        return httpx2.Response(200, text=text, headers={"content-type": "text/event-stream"})
    return httpx2.Response(200, json=message)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(each["text"] for each in content)


def _event(event: dict[str, Any]) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def _events(message: dict[str, Any], blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    ]
    for index, block in enumerate(blocks):
        start: dict[str, Any]
        if block["type"] == "text":
            start, delta = (
                {"type": "text", "text": ""},
                {"type": "text_delta", "text": block["text"]},
            )
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        found += [
            {"type": "content_block_start", "index": index, "content_block": start},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    return [
        *found,
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]


def answer(guard: Guard, task: str, how: str) -> str:
    """Lets the agent do a task, and returns its last message."""
    if how in ("async", "astream"):
        return asyncio.run(_answer(guard, task, how))
    client = Anthropic(
        api_key="none", http_client=httpx2.Client(transport=httpx2.MockTransport(respond))
    )
    tools = guarded([beta_tool(refund), beta_tool(close_account)], guard)
    runner: Any = client.beta.messages.tool_runner(
        **ASK, tools=tools, messages=[{"role": "user", "content": task}], stream=how == "stream"
    )
    last: Any = None
    for each in runner:
        last = each.get_final_message() if how == "stream" else each
    return str(last.content[0].text)


async def _answer(guard: Guard, task: str, how: str) -> str:
    async def refund_later(order: str, amount: int) -> str:
        return refund(order, amount)

    async def close_later(order: str) -> str:
        return close_account(order)

    later = httpx2.AsyncClient(transport=httpx2.MockTransport(respond))
    client = AsyncAnthropic(api_key="none", http_client=later)
    named = {refund_later: "refund", close_later: "close_account"}
    tools = [beta_async_tool(function, name=name) for function, name in named.items()]
    runner: Any = client.beta.messages.tool_runner(
        **ASK,
        tools=guarded(tools, guard),
        messages=[{"role": "user", "content": task}],
        stream=how == "astream",
    )
    last: Any = None
    async for each in runner:
        last = await each.get_final_message() if how == "astream" else each
    return str(last.content[0].text)


if __name__ == "__main__":
    run(answer)
