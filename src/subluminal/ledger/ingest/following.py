"""Follows every journal of a home into the intake, from where the ledger stopped reading.

Polling costs a few microseconds per file, and cannot miss a change as a file watcher can. Files
that have not grown for a while are polled less often, and so are the directories of runs that have
no other files.
"""

import os
from collections.abc import Iterable

from msgspec import Struct

from subluminal.clock import now
from subluminal.journal.files import part_path
from subluminal.journal.reading import Follower, JournalFile, Lines, directories_in, files_in
from subluminal.ledger.ingest.intake import Intake
from subluminal.ledger.ingest.lookups import Lookups

COLD_MS = 30_000
"""A journal that has not grown for this long is cold, and polled every `COLD_POLL_MS`."""
COLD_POLL_MS = 1_000
IDLE_POLL_MS = 10_000
"""How often cold journals are polled while nobody waits for their events."""
MAX_SEARCHES = 16
"""How many pieces of an overlong line are searched before other files have their turn."""
MAX_OPEN = 256
"""The most journals that are kept open at once."""
RECENT_NS = 2_000_000_000
"""A directory that changed this recently is listed again: its timestamp may be too coarse to show
a later change."""


class Tracked(Struct):
    """One journal file, and how far it has been read."""

    path: str
    name: str
    """path below the journal directory; the key of its offset in the ledger"""
    offset: int
    seen: tuple[int, int] = (0, 0)
    """size in bytes and modification time in ns when the file was last read to its end"""
    follower: Follower | None = None
    before: "Tracked | None" = None
    """the file that the same shim wrote before this one; it must be read first"""
    is_drained: bool = False
    """whether the file was read to its end"""
    unfinished: int = 0
    """size in bytes of the line that the file ended with then, and that has no newline yet"""

    def close(self) -> None:
        if self.follower is not None:
            self.follower.close()
            self.follower = None


class Following:
    """All journals below one directory."""

    def __init__(self, root: str, lookups: Lookups) -> None:
        self._root = root
        self._lookups = lookups
        self._tracked: dict[str, Tracked] = {}
        self._hot: dict[str, Tracked] = {}
        """files that are not cold"""
        self._directories: dict[str, int] = {}
        """modification time of every directory when it was last listed, in ns; 0: list it again"""
        self._hot_directories: set[str] = set()
        self._next_cold_ms = 0
        self._offsets: dict[str, int] = {}
        self.rewind()

    def rewind(self) -> None:
        """Goes back to the offsets that the ledger holds. Called after a commit failed."""
        self.close()
        self._offsets = self._lookups.journal_offsets()
        self._discover(self._directories)

    def close(self) -> None:
        """Closes every file."""
        for tracked in self._tracked.values():
            tracked.close()
        self._tracked = {}
        self._hot = {}
        self._directories = {}
        self._hot_directories = set()
        self._next_cold_ms = 0

    def pump(
        self, intake: Intake, *, everything: bool = False, cold_poll_ms: int = COLD_POLL_MS
    ) -> bool:
        """Reads new lines until the batch is full. Returns whether there may be more.

        With `everything`, looks at cold files too, although they are not due. `cold_poll_ms` is
        when they are due the next time.
        """
        at = now()
        if everything:
            self._next_cold_ms = 0
        if at.mono_ms < self._next_cold_ms:
            self._discover(self._hot_directories)
            return self._read_all(self._hot, intake)
        self._discover(self._directories)
        self._sort_out(at.wall_ms)
        may_be_more = self._read_all(self._tracked, intake)
        if not may_be_more:
            self._next_cold_ms = at.mono_ms + cold_poll_ms
        return may_be_more

    def _sort_out(self, at_ms: int) -> None:
        """Finds out which files and directories are cold."""
        self._hot = {
            path: tracked
            for path, tracked in self._tracked.items()
            if not tracked.is_drained or at_ms - tracked.seen[1] // 1_000_000 <= COLD_MS
        }
        recent_ns = (at_ms - COLD_MS) * 1_000_000
        self._hot_directories = {os.path.dirname(path) for path in self._hot}
        self._hot_directories.update(
            path for path, seen in self._directories.items() if not seen or seen > recent_ns
        )

    def _read_all(self, files: dict[str, Tracked], intake: Intake) -> bool:
        must_wait = False
        for tracked in list(files.values()):
            if tracked.before is not None and not tracked.before.is_drained:
                must_wait = True
                continue
            is_searching = self._read(tracked, intake)
            if is_searching or intake.is_full:
                # Moved to the end, so that the next round begins with the other files.
                if files.pop(tracked.path, None) is not None:
                    files[tracked.path] = tracked
                return True
        return must_wait

    def backlog_bytes(self) -> int:
        """How much of the journals has not been read yet, in bytes. Unfinished lines were read."""
        backlog = 0
        for tracked in self._hot.values():
            try:
                size = os.stat(tracked.path).st_size
            except FileNotFoundError:
                continue
            backlog += max(0, size - tracked.offset - tracked.unfinished)
        return backlog

    def unfinished_bytes(self) -> int:
        """How much of the journals is lines without an end, in bytes: they are not events yet."""
        return sum(tracked.unfinished for tracked in self._tracked.values())

    def _read(self, tracked: Tracked, intake: Intake) -> bool:
        """Reads one file. Returns True if it stopped within a very long line, to let others in."""
        try:
            found = os.stat(tracked.path)
        except FileNotFoundError:
            self._drop(tracked)
            return False
        seen = (found.st_size, found.st_mtime_ns)
        if seen == tracked.seen:
            return False
        if found.st_size < tracked.offset:
            # The file was cut. Events that are stored already are known by their numbers.
            tracked.close()
            tracked.offset = 0
        follower = self._follower(tracked)
        if follower is None:
            return False
        searches = 0
        while not intake.is_full:
            piece = follower.read(may_pause=True)
            tracked.unfinished = follower.searched - follower.offset
            if piece is None and follower.is_searching:
                searches += 1
                if searches == MAX_SEARCHES:
                    return True
                continue
            if piece is None:
                tracked.seen = seen
                tracked.is_drained = True
                self._hot[tracked.path] = tracked
                return False
            if isinstance(piece, Lines):
                intake.take(piece.lines, tracked.name, piece.offset)
            else:
                intake.take_overlong(piece, tracked.name)
            intake.offsets[tracked.name] = tracked.offset = piece.next_offset
        return False

    def _follower(self, tracked: Tracked) -> Follower | None:
        if tracked.follower is None:
            try:
                tracked.follower = Follower(tracked.path, tracked.offset)
            except OSError:
                self._drop(tracked)
                return None
            self._close_some(tracked)
        return tracked.follower

    def _close_some(self, needed: Tracked) -> None:
        others = [
            each
            for each in self._tracked.values()
            if each.follower is not None and each is not needed
        ]
        for tracked in others[: max(0, len(others) + 1 - MAX_OPEN)]:
            tracked.close()

    def _drop(self, tracked: Tracked) -> None:
        tracked.close()
        tracked.is_drained = True
        self._tracked.pop(tracked.path, None)
        self._hot.pop(tracked.path, None)

    def _discover(self, directories: Iterable[str]) -> None:
        """Looks for new files in directories, and for new directories if the root has changed."""
        if self._has_changed(self._root):
            for entry in directories_in(self._root):
                self._directories.setdefault(entry, 0)
                self._hot_directories.add(entry)
            self._list(self._root, "")
        for directory in list(directories):
            if directory != self._root and self._has_changed(directory):
                self._list(directory, os.path.basename(directory))

    def _has_changed(self, directory: str) -> bool:
        """Whether a directory was changed since it was last listed."""
        try:
            changed_ns = os.stat(directory).st_mtime_ns
        except (FileNotFoundError, NotADirectoryError):
            self._directories.pop(directory, None)
            self._hot_directories.discard(directory)
            return False
        if self._directories.get(directory) == changed_ns:
            return False
        is_settled = now().wall_ms * 1_000_000 - changed_ns > RECENT_NS
        self._directories[directory] = changed_ns if is_settled else 0
        return True

    def _list(self, directory: str, run: str) -> None:
        for file in sorted(files_in(directory, run)):
            self._track(file)

    def _track(self, file: JournalFile) -> None:
        if file.path not in self._tracked:
            name = os.path.relpath(file.path, self._root)
            before = None
            if file.part:
                directory = os.path.dirname(file.path)
                before = self._tracked.get(part_path(directory, file.shim, file.part - 1))
            offset = self._offsets.get(name, 0)
            tracked = Tracked(file.path, name, offset, before=before)
            self._tracked[file.path] = self._hot[file.path] = tracked
