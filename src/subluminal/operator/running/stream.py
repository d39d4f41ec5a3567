"""The run's events as they are journalled, line by line, into a file or a pipe.

A thread of its own: a reader that is slow, or stops, holds up neither the agent nor its signals.
The journals are the buffer, so nothing piles up here and nothing is lost.
"""

import os
import threading
from collections.abc import Iterator, Sequence

from subluminal.journal.reading import Follower, JournalFile, Lines, files_in

_LOOK_S = 0.05
_RUN_END = b'{"type":"run_end"'


class Outlet:
    """Where lines go; one that fails gets no more, and says why."""

    def __init__(self, fd: int, name: str, *, owns: bool = True) -> None:
        self.name = name
        self.problem: OSError | None = None
        self._fd = fd
        self._owns = owns

    def write(self, data: bytes) -> None:
        """Writes everything, however long the reader takes."""
        if self.problem is not None:
            return
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            self.problem = error

    def close(self) -> None:
        if self._owns:
            os.close(self._fd)

    def remove(self) -> None:
        """Takes the file away that was made for this."""
        self.close()
        os.unlink(self.name)


class Stream:
    """Follows the journals of one run until it is told that no more will come."""

    def __init__(self, directory: str, outlets: Sequence[Outlet]) -> None:
        self._directory = directory
        self._outlets = outlets
        self._ended = threading.Event()
        self._offsets: dict[str, int] = {}
        self._thread = threading.Thread(target=self._follow, name="events", daemon=True)

    def start(self) -> None:
        """Begins; call it when this process forks no more."""
        self._thread.start()

    def finish(self) -> None:
        """Says that everything is journalled."""
        self._ended.set()

    def wait(self, timeout_s: float) -> bool:
        """Whether all of it has been passed on by now."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _follow(self) -> None:
        while any(outlet.problem is None for outlet in self._outlets):
            # Asked first: what is journalled before it is set is read after it.
            is_last = self._ended.is_set()
            for piece in self._news():
                for outlet in self._outlets:
                    outlet.write(piece)
            if is_last:
                return
            self._ended.wait(_LOOK_S)

    def _news(self) -> Iterator[bytes]:
        """What was added since the last look. A shim's next file is begun after its last line.

        A run's end is told after what others said before it. `sub run` writes it, whose id is the
        oldest: its file is read first, so what came before its last line is read after it.
        """
        ends = []
        for file in sorted(files_in(self._directory, "")):
            for piece in self._added(file):
                end = _end_in(piece)
                yield piece[:end]
                ends.append(piece[end:])
        yield from ends

    def _added(self, file: JournalFile) -> Iterator[bytes]:
        offset = self._offsets.get(file.path, 0)
        try:
            if os.stat(file.path).st_size <= offset:
                return
            follower = Follower(file.path, offset)
        except FileNotFoundError:
            return  # a full ledger's retention was faster
        try:
            while (piece := follower.read()) is not None:
                self._offsets[file.path] = piece.next_offset
                # A torn line that had to stay is no event (journal.writing).
                lines = piece.lines if isinstance(piece, Lines) else []
                yield b"".join(line + b"\n" for line in lines if line.endswith(b"}"))
        finally:
            follower.close()


def _end_in(lines: bytes) -> int:
    """Where a run's end begins among whole lines; only at the start of one it is that."""
    if lines.startswith(_RUN_END):
        return 0
    at = lines.find(b"\n" + _RUN_END)
    return len(lines) if at < 0 else at + 1
