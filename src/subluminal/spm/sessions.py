"""`session_context`: how often a tool is called in a session.

Sessions are counted in the state of the run, so that threads, processes and other AgentSecurity
objects of the same run count together.
"""

import time
from collections.abc import Mapping
from hashlib import sha256

from subluminal.contracts.counters import Cell, CellKind
from subluminal.spm.doors import Door
from subluminal.spm.hooks import Counting
from subluminal.spm.rules import denied
from subluminal.spm.types import AgentActionRequest, Decision, PluginResult

_SESSION_MS = 3_600_000
"""How long a session counts, from its first call."""
_RECENT = CellKind.RECENT  # a run may see any number of sessions, and forgets the oldest


class SessionContext(Counting):
    """Limits how often a tool is called in a session. Code: SESSION_LIMIT_EXCEEDED.

    A call takes its place when it is checked, and gives it back if it does not pass.
    """

    name = "session-context"

    def __init__(self, limits: Mapping[str, Mapping[str, int]]) -> None:
        self._limits = {tool: int(limit["max_per_session"]) for tool, limit in limits.items()}
        self._taken: dict[str, bytes] = {}
        """the sessions of calls that have taken a place and are being checked, by request_id"""

    def take(self, door: Door, request: AgentActionRequest) -> PluginResult | None:
        """Takes a place in the session, or refuses the call."""
        tool, session_id = request.action.tool_name, request.context.get("session_id")
        most = self._limits.get(tool)
        if session_id is None or most is None:
            return None
        key = _key(str(session_id), tool)
        with door.counters() as counters:
            calls, since_ms = _now(counters.read(_RECENT, key))
            if calls < most:
                counters.write([(_RECENT, key, (calls + 1, since_ms))])
        if calls >= most:
            message = f"the session has called `{tool}` {most} times, which is its limit"
            return denied("SESSION_LIMIT_EXCEEDED", message)
        self._taken[request.request_id] = key
        return None

    def ended(
        self, door: Door, request: AgentActionRequest, _decision: Decision | None, *, allowed: bool
    ) -> None:
        """Gives the place of a call back that did not pass."""
        key = self._taken.pop(request.request_id, None)
        if key is None or allowed:
            return
        with door.counters() as counters:
            calls, since_ms = _now(counters.read(_RECENT, key))
            counters.write([(_RECENT, key, (max(0, calls - 1), since_ms))])


def session_context(*, limits: Mapping[str, Mapping[str, int]]) -> SessionContext:
    """Limits calls in a session: `limits={"send_email": {"max_per_session": 3}}`.

    A session is the `session_id` of a check, for an hour; calls without one are not limited.
    """
    return SessionContext(limits)


def _key(session_id: str, tool: str) -> bytes:
    return sha256(b"spm session\0" + session_id.encode() + b"\0" + tool.encode()).digest()


def _now(cell: Cell) -> tuple[int, int]:
    """Returns the calls of a session, and when it began."""
    now_ms = time.monotonic_ns() // 1_000_000
    calls, since_ms = cell or (0, now_ms)
    is_over = since_ms > now_ms or now_ms - since_ms >= _SESSION_MS  # or the machine has restarted
    return (0, now_ms) if is_over else (calls, since_ms)
