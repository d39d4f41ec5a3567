"""A pass-through in Python that does nothing else: spawn, poll, copy.

It runs as a script, and `recording` adds a journal to the same loop. So it imports only what a
pass-through needs.
"""

import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def pass_on(command: list[str], look: "Callable[[bytes], None] | None" = None) -> None:
    """Runs until the server ends. `look` gets the client's bytes before they are forwarded."""
    (up_in, to_up), (from_up, up_out) = os.pipe(), os.pipe()
    os.posix_spawn(
        command[0],
        command,
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, up_in, 0), (os.POSIX_SPAWN_DUP2, up_out, 1)],
    )
    os.close(up_in)
    os.close(up_out)
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(from_up, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            data = os.read(fd, 65536)
            if not data and fd == from_up:
                return
            if not data:
                poll.unregister(0)
                os.close(to_up)
                continue
            if fd == 0 and look is not None:
                look(data)
            target = to_up if fd == 0 else 1
            while data:
                data = data[os.write(target, data) :]


if __name__ == "__main__":
    pass_on(sys.argv[1:])
