"""Finds the rules whose tool names may cover others', without asking every one of them.

A bundle may have ten thousand rules; lint compares only those that an index brings together.
"""

from subluminal.contracts.bundle import Match
from subluminal.policy.covering import head_of, is_literal, matches_every_name

MAX_PAIRS = 500_000
"""Pairs that one check of a bundle compares; past it, lint says nothing about the rest."""


class CoverIndex:
    """Numbered matches, by the shape of their tool patterns."""

    def __init__(self) -> None:
        self._anywhere: list[int] = []
        self._exact: dict[str, list[int]] = {}
        self._prefix: dict[str, list[int]] = {}

    def add(self, number: int, match: Match) -> None:
        """Takes a match that may cover others."""
        names = match.tool_name
        if names is None or matches_every_name(names) or names.regex:
            self._anywhere.append(number)
            return
        for glob in names.glob:
            if is_literal(glob):
                self._exact.setdefault(glob, []).append(number)
            else:
                self._prefix.setdefault(head_of(glob), []).append(number)

    def candidates(self, match: Match) -> list[int]:
        """Returns, in order, all that may cover this match; the others surely do not."""
        names = match.tool_name
        found = set(self._anywhere)
        if names is not None and names.glob:
            # Each pattern has to be covered; the first one settles who can.
            glob = names.glob[0]
            found.update(self._exact.get(glob, ()))
            head = head_of(glob)
            for length in range(len(head) + 1):
                found.update(self._prefix.get(head[:length], ()))
        return sorted(found)
