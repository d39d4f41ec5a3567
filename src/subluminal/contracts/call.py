"""The boundary between adapters and the core: what a door hands in (Pack 7.1)."""

from typing import Any

from msgspec import Struct

from subluminal.contracts.vocabulary import Transport


class ToolCall(Struct, frozen=True, kw_only=True):
    """One intended action, in no protocol's words."""

    server_name: str
    """exact configured server name"""
    tool_name: str
    """exact upstream tool name"""
    args: dict[str, Any] | None
    """None where they were too large to inspect (Pack 1.10)"""
    args_hash: str
    bytes_in: int
    """size of the message that carried the call"""
    transport: Transport
    context: dict[str, str] = {}
    """call_context: what the adapter wants recorded beside the call"""
