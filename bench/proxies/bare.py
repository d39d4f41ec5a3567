"""A pass-through in Python that does nothing else: spawn, poll, copy."""

import os
import select
import sys


def main() -> None:
    (up_in, to_up), (from_up, up_out) = os.pipe(), os.pipe()
    os.posix_spawn(
        sys.argv[1],
        sys.argv[1:],
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
            target = to_up if fd == 0 else 1
            while data:
                data = data[os.write(target, data) :]


main()
