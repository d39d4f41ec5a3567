"""Disk space that a shim holds back, so that a full disk does not stop decisions at once (journal-first).

The file is unlinked as soon as it exists: a killed shim gives the space back by dying.
"""

import os


class Reserve:
    """`size_bytes` of preallocated space beside the journal."""

    def __init__(self, directory: str, size_bytes: int) -> None:
        self._directory = directory
        self._size_bytes = size_bytes
        self._fd = -1
        self.is_spent = False
        """Whether the disk was full. Then previews are left out until there is room again."""
        self._hold()

    def release(self) -> bool:
        """Gives the space back to the disk. False if there was none left to give."""
        self.is_spent = True
        if self._fd < 0:
            return False
        os.close(self._fd)
        self._fd = -1
        return True

    def rearm(self) -> None:
        """Takes the space again if the disk has plenty: it must not eat what it just gave."""
        try:
            disk = os.statvfs(self._directory)
        except OSError:
            return
        if disk.f_bavail * disk.f_frsize > 4 * self._size_bytes + 1_048_576:
            self._hold()

    def _hold(self) -> None:
        self.is_spent = False
        if not self._size_bytes:
            return
        path = os.path.join(self._directory, f".reserve-{os.getpid()}-{id(self):x}")
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError:
            self.is_spent = True
            return
        try:
            os.unlink(path)
            os.posix_fallocate(fd, 0, self._size_bytes)
        except OSError:
            os.close(fd)
            self.is_spent = True
            return
        self._fd = fd
