"""One process, as `proc` and `ps` both describe it, and what can be said of any system."""

import os


class Process:
    """What supervision and state need to know about a process.

    No arguments and no environment: they can contain secrets (unprintable-secrets).
    """

    __slots__ = ("group", "name", "parent", "pid", "start", "state")

    def __init__(
        self, pid: int, name: bytes, state: bytes, parent: int, group: int, start: int
    ) -> None:
        self.pid = pid
        self.name = "".join(c if c.isprintable() else "?" for c in os.fsdecode(name))
        self.state = state[:1].decode("ascii", "replace")
        """One letter, as `ps` prints it."""
        self.parent = parent
        self.group = group
        self.start = start
        """Distinguishes a process from a later one with the same pid. Its unit is the system's."""

    @property
    def is_dead(self) -> bool:
        """True for a zombie, which only waits for its parent to reap it."""
        return self.state in ("Z", "X")

    @property
    def is_runnable(self) -> bool:
        """True if the process needs a CPU, or waits for a disk or for memory: it will go on."""
        return self.state in ("R", "D", "U")


def exists(pid: int) -> bool:
    """Returns False if no process, living or zombie, has this pid."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def below(roots: set[int], everyone: dict[int, Process], spare: frozenset[int]) -> list[Process]:
    """Lists every process of a table below some others."""
    children: dict[int, list[Process]] = {}
    for entry in everyone.values():
        children.setdefault(entry.parent, []).append(entry)
    found: list[Process] = []
    todo, seen = list(roots), set(roots)
    while todo:
        for entry in children.get(todo.pop(), ()):
            if entry.pid not in spare and entry.pid not in seen:
                seen.add(entry.pid)
                found.append(entry)
                todo.append(entry.pid)
    return found
