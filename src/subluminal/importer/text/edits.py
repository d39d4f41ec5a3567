"""Changes to a text as replaced spans. Whatever no edit names keeps its bytes."""

from collections.abc import Iterable
from typing import NamedTuple


class Edit(NamedTuple):
    """`text[start:end]` becomes `new`. Edits at one place apply in the order they are given."""

    start: int
    end: int
    new: str


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Returns the changed text. Edits must not overlap."""
    pieces: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        assert edit.start >= at, "edits overlap"
        pieces += [text[at : edit.start], edit.new]
        at = edit.end
    return "".join([*pieces, text[at:]])
