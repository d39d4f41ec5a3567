"""A process that enters a run looks for dead ones there, and has their record completed.

Usually the warden of a killed shim has done that. If it was killed too, the next shim of the run is
the first to notice. The work is done in a process of its own (`last_words`), because no call may
wait for it. This module imports little: every shim loads it before its server starts (fast-start).
"""

import os
import sys

from subluminal.config.env import without_tokens
from subluminal.config.places import Places

_MAX_FINDERS = 4
"""Most processes that run at once: notes of dead processes are files that anybody may leave.
ledgerd, or the next command, completes the other records."""


def last_words_command(places: Places, pid: int) -> list[str]:
    """Returns the command that completes the record of a dead process."""
    # -P: do not import from the client's directory.
    program = [sys.executable, "-P", "-m", "subluminal.core.runs.last_words"]
    return [*program, places.home, str(pid)]


class Finders:
    """The processes that complete the records of dead ones, until they are reaped."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self.running: list[int] = []
        """pids of the processes"""

    def look(self, run_id: str) -> None:
        """Starts a process for each dead process that was in the run, for _MAX_FINDERS at most."""
        from subluminal.core.runs.attendance import dead_in

        null = os.devnull
        for pid in dead_in(self._places, run_id)[: _MAX_FINDERS - len(self.running)]:
            command = last_words_command(self._places, pid)
            try:
                finder = os.posix_spawn(
                    command[0],
                    command,
                    without_tokens(os.environ),
                    file_actions=[
                        (os.POSIX_SPAWN_OPEN, 0, null, os.O_RDONLY, 0),
                        (os.POSIX_SPAWN_OPEN, 1, null, os.O_WRONLY, 0),
                        (os.POSIX_SPAWN_OPEN, 2, null, os.O_WRONLY, 0),
                    ],
                )
            except OSError:
                return  # ledgerd or a command will find them
            self.running.append(finder)

    def reap(self) -> None:
        """Reaps the processes that have ended."""
        self.running = [pid for pid in self.running if _is_running(pid)]


def _is_running(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False  # somebody else has reaped it
