"""Facts about other processes from /proc: whether they live, since when, and whether they wait.

The start time distinguishes a process from a later one with the same pid.
"""


def start_time(pid: int) -> int | None:
    """Returns when a living process started, in clock ticks since boot; None if it is dead.

    A zombie counts as dead: it only waits for its parent.
    """
    fields = _stat(pid)
    return None if fields is None or fields[0] in (b"Z", b"X") else int(fields[19])


def is_starved(pid: int) -> bool:
    """Returns True if a process is runnable, or waits for a disk or for memory: it will go on."""
    fields = _stat(pid)
    return fields is not None and fields[0] in (b"R", b"D")


def _stat(pid: int) -> list[bytes] | None:
    """Returns the fields of /proc/PID/stat from the third one on; None if there is no process."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name in parentheses may contain anything, including `)` and spaces.
    return text[text.rindex(b")") + 2 :].split()
