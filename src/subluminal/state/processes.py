"""Whether a process still lives, told apart from a later one with the same pid."""


def start_time(pid: int) -> int | None:
    """Returns when a living process started, in clock ticks since boot; None if there is none.

    A zombie counts as dead: it is only waiting for its parent to look.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name in parentheses may hold anything, `)` and blanks included; then fields 3 and 22.
    fields = text[text.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
