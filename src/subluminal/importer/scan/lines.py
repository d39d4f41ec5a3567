"""Lines of offsets in one text."""

from bisect import bisect_right


class Lines:
    """Where the lines of a text begin, found once."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        at = text.find("\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = text.find("\n", at + 1)

    def of(self, offset: int) -> int:
        """Returns the line of an offset, counted from 1."""
        return bisect_right(self._starts, max(offset, 0))
