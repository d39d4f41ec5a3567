"""A tool call as an adapter hands it to the core, in no protocol's terms (Pack 7.1)."""

from typing import Any

from msgspec import Struct

from subluminal.contracts.agents import Claims
from subluminal.contracts.gate import Settled
from subluminal.contracts.intents import Judgement
from subluminal.contracts.vocabulary import Transport

MCP, BUILT_IN = "mcp", "built-in"
"""Providers of tools: an MCP server, and the agent's own program."""


class Given(Struct, frozen=True, kw_only=True):
    """What the program around a call says about it. Only doors inside of a program have it."""

    labels: frozenset[str] = frozenset()
    """labels of the data that the call handles"""
    context: dict[str, Any] = {}
    """further data, which rules can test"""
    user_input: str | None = None
    """text of the user that led to the call; rules may search it, records have its hash only"""
    claims: Claims | None = None
    """what the caller says of itself"""


class ToolCall(Struct, frozen=True, kw_only=True):
    """One tool call of an agent."""

    server_name: str
    """exact name of the server in the client's configuration"""
    tool_name: str
    """exact name of the tool, as its server gives it"""
    args: dict[str, Any] | None
    """the arguments; None if they were too large to inspect (Pack 1.10)"""
    args_hash: str
    """SHA-256 of the canonical arguments, in hex"""
    bytes_in: int
    """size in bytes of the message that carried the call"""
    transport: Transport
    """protocol through which the call came"""
    cwd: str | None = None
    """absolute path of the directory in which the call acts; None for that of this process"""
    context: dict[str, str] = {}
    """the Pack's call_context: what the adapter wants recorded with the call"""
    provider: str = MCP
    """what provides the tool: `mcp`, `built-in`, or a name that a program gives"""
    given: Given | None = None
    """what the program says about the call"""
    judgement: Judgement | None = None
    """what a pack says about the call, if the adapter has asked one itself"""
    added: Settled | None = None
    """what plugins of the program say about the call: one more layer"""
