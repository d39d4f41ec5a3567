"""Lines that wait for a policy which is being compiled for the first time (fast-start)."""

from subluminal.adapters.mcp_stdio.intake import LargeLine

HOLD_MS = 5_000
"""How long calls wait; then they are refused until the policy is there."""


class Held:
    """Lines in the order in which they came, and until when they wait."""

    def __init__(self) -> None:
        self._lines: list[bytes | LargeLine] = []
        self._until_ms = 0
        self.size = 0
        """bytes that wait in memory"""

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, line: bytes | LargeLine) -> None:
        """Holds one more."""
        self._lines.append(line)
        self.size += len(line) if isinstance(line, bytes) else 0

    def may_wait(self, now_ms: int) -> bool:
        """Whether there is time left; it runs from the first time that this is asked."""
        self._until_ms = self._until_ms or now_ms + HOLD_MS
        return now_ms < self._until_ms

    def let_go(self) -> list[bytes | LargeLine]:
        """Returns all of them, to be decided now."""
        lines, self._lines, self.size, self._until_ms = self._lines, [], 0, 0
        return lines

    def drop(self) -> None:
        """Forgets them: calls that were never decided go nowhere."""
        for line in self.let_go():
            if isinstance(line, LargeLine):
                line.spool.close()
