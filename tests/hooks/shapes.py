"""Events as the five clients send them: the members that differ, and those around them.

The recorded events in `tests/data/hooks` have the rest; these build events with contents of a
test's own.
"""

from typing import NamedTuple


class Shape(NamedTuple):
    before: str
    after: str
    stop: str
    end: str
    session: str = "session_id"
    name: str = "tool_name"
    args: str = "tool_input"
    result: str = "tool_response"
    call: str | None = None
    event: str | None = "hook_event_name"
    mcp: str = "mcp__{0}__{1}"


SHAPES = {
    "claude": Shape("PreToolUse", "PostToolUse", "Stop", "SessionEnd", call="tool_use_id"),
    "codex": Shape("PreToolUse", "PostToolUse", "Stop", "SessionEnd", call="tool_use_id"),
    "gemini": Shape("BeforeTool", "AfterTool", "AfterAgent", "SessionEnd", mcp="mcp_{0}_{1}"),
    "copilot": Shape(
        "preToolUse",
        "postToolUse",
        "agentStop",
        "sessionEnd",
        session="sessionId",
        name="toolName",
        args="toolArgs",
        result="toolResult",
        event=None,
        mcp="{0}-{1}",
    ),
    "opencode": Shape(
        "tool.execute.before",
        "tool.execute.after",
        "session.idle",
        "dispose",
        call="call_id",
        mcp="{0}_{1}",
    ),
}
RESULTS = {
    "claude": {"stdout": "done"},
    "codex": "done",
    "gemini": {"llmContent": "done", "returnDisplay": "done"},
    "copilot": {"resultType": "success", "textResultForLlm": "done"},
    "opencode": {"output": "done"},
}
