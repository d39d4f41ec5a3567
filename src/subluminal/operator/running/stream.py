"""Copies a run's events, as they are journalled, line by line into files and pipes.

It has a thread of its own, so that a slow or stopped reader delays neither the agent nor its
signals. The journals are the buffer: nothing piles up in memory and nothing is lost.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence

from subluminal.journal.reading import Follower, JournalFile, Lines, files_in

_LOOK_S = 0.05
_RUN_END = b'{"type":"run_end"'


class Outlet:
    """A file or pipe that gets the lines. After an error it gets no more; `problem` says why."""

    def __init__(
        self, fd: int, name: str, *, owns: bool = True, shown: Callable[[str], str] | None = None
    ) -> None:
        """`shown`, if given, makes the text safe for the terminal that `fd` is."""
        self.name = name
        self.problem: OSError | None = None
        self._fd = fd
        self._owns = owns
        self._shown = shown

    def write(self, data: bytes) -> None:
        """Writes all of the data, however long the reader takes."""
        if self.problem is not None:
            return
        if self._shown is not None:
            # Only there: the hashes of the chain cover these bytes.
            data = self._shown(data.decode("utf-8", "replace")).encode()
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
        """Closes and deletes the file."""
        self.close()
        os.unlink(self.name)


class Stream:
    """Follows the journals of one run until `finish` says that no more will come."""

    def __init__(self, directory: str, outlets: Sequence[Outlet]) -> None:
        self._directory = directory
        self._outlets = outlets
        self._ended = threading.Event()
        self._offsets: dict[str, int] = {}
        self._thread = threading.Thread(target=self._follow, name="events", daemon=True)

    def start(self) -> None:
        """Starts the thread. The process must not fork after this."""
        self._thread.start()

    def finish(self) -> None:
        """Tells the thread that everything is journalled."""
        self._ended.set()

    def wait(self, timeout_s: float) -> bool:
        """Waits at most so long; returns whether everything was copied."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _follow(self) -> None:
        while any(outlet.problem is None for outlet in self._outlets):
            # Read before the journals: everything journalled before `finish` is still copied.
            is_last = self._ended.is_set()
            for piece in self._news():
                for outlet in self._outlets:
                    outlet.write(piece)
            if is_last:
                return
            self._ended.wait(_LOOK_S)

    def _news(self) -> Iterator[bytes]:
        """Yields what was journalled since the last look; a run's end comes last.

        `sub run` writes run_end. Its shim id is the oldest, so its file is read first. Lines that
        other shims wrote before the end are read later in the same pass, and must come before it.
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
            return  # ledgerd has read and removed it
        try:
            while (piece := follower.read()) is not None:
                self._offsets[file.path] = piece.next_offset
                # A torn line that could not be removed is not an event (journal.writing).
                lines = piece.lines if isinstance(piece, Lines) else []
                yield b"".join(line + b"\n" for line in lines if line.endswith(b"}"))
        finally:
            follower.close()


def _end_in(lines: bytes) -> int:
    """Returns the offset of the line that ends the run, else the length of `lines`."""
    if lines.startswith(_RUN_END):
        return 0
    at = lines.find(b"\n" + _RUN_END)
    return len(lines) if at < 0 else at + 1
