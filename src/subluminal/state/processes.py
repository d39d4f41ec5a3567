"""Whether a process still lives, told apart from a later one with the same pid, and could go on."""


def start_time(pid: int) -> int | None:
    """Returns when a living process started, in clock ticks since boot; None if there is none.

    A zombie counts as dead: it is only waiting for its parent to look.
    """
    fields = _stat(pid)
    return None if fields is None or fields[0] in (b"Z", b"X") else int(fields[19])


def is_starved(pid: int) -> bool:
    """Whether a process waits for nothing but a CPU, or for memory or a disk on its way there."""
    fields = _stat(pid)
    return fields is not None and fields[0] in (b"R", b"D")


def _stat(pid: int) -> list[bytes] | None:
    """The fields of /proc/PID/stat from the third one on; None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name in parentheses may hold anything, `)` and blanks included.
    return text[text.rindex(b")") + 2 :].split()
