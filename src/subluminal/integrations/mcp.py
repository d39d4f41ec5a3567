"""MCP clients: the tool calls of a client or session of the MCP SDK, first and second line.

    async with Client(server) as client:
        client = guarded(client, guard, server="billing")

A guarded call carries its id, and offers itself to a shim behind the client: the shim then decides
and counts nothing a second time.
"""

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from subluminal.adapters.in_process.guarding.calls import TOOL_USE_ID
from subluminal.integrations.framework import Found, guarded_call_async, missing
from subluminal.sdk.guard import Guard, Refused, RunTerminated

try:
    from mcp.types import CallToolResult
except ImportError as error:
    raise missing("mcp", "mcp>=1.22", error) from None

_Client = TypeVar("_Client")


def guarded(client: _Client, guard: Guard, *, server: str) -> _Client:
    """Returns a client whose `call_tool` is guarded; all else is the client's own.

    `server` is the name of the server in rules and records: that of the shim, if there is one. The
    client may have been entered, or be entered through the one that is returned.
    """
    return cast(_Client, _Guarded(client, guard, server))


class _Guarded:
    def __init__(self, client: Any, guard: Guard, server: str) -> None:
        self._client = client
        self._guard = guard
        self._server = server

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *more: Any,
        meta: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """Calls a tool. A refusal is a result with `isError`."""
        given = dict(meta or {})
        call = self._guard.call(
            name,
            arguments or {},
            server=self._server,
            provider="mcp",
            client_call_id=given.get(TOOL_USE_ID),
        )

        async def run() -> Any:
            sent = {**given, **call.offer()}
            return await self._client.call_tool(name, arguments, *more, meta=sent, **options)

        try:
            return await guarded_call_async(call, run, read)
        except RunTerminated:
            raise
        except Refused as refused:
            content = [{"type": "text", "text": str(refused)}]
            return CallToolResult.model_validate({"content": content, "isError": True})

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._client.__aexit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def read(found: Any) -> Found:
    """Reads the result of an MCP call, of either line of the SDK."""
    said = found.model_dump(mode="json", by_alias=True, exclude_none=True)
    if not said.get("isError"):
        return Found(said)
    texts = (each.get("text", "") for each in said.get("content", ()))
    return Found(said, "\n".join(texts))
