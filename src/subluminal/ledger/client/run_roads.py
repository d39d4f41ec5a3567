"""The journals of one run, whole: what an artifact is made of."""

from collections.abc import Iterator

from subluminal.export.ordering import Road
from subluminal.journal.reading import Follower, JournalFile, Lines, files_in


def journal_roads(directory: str) -> list[Road]:
    """One road for each shim of the run whose journals lie in this directory."""
    by_shim: dict[str, list[JournalFile]] = {}
    for file in sorted(files_in(directory, "")):
        by_shim.setdefault(file.shim, []).append(file)
    return [_Road(files) for _, files in sorted(by_shim.items())]


class _Road:
    def __init__(self, files: list[JournalFile]) -> None:
        self._files = files

    def __call__(self) -> Iterator[bytes]:
        for file in self._files:
            follower = Follower(file.path)
            try:
                while (piece := follower.read()) is not None:
                    if isinstance(piece, Lines):
                        yield from piece.lines
            finally:
                follower.close()
