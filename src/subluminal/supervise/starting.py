"""Runs inside the warden: fork, and become the upstream. Returns only in the warden.

Knows nothing of who will watch the process afterwards.
"""

import errno
import os

from subluminal.supervise.prctl import die_with_parent
from subluminal.supervise.signals import posix, restore_defaults
from subluminal.supervise.wire import Spawn

_NO_SUCH_PROGRAM = (errno.ENOENT, errno.ENOTDIR)


class CannotStart(Exception):
    """The one line that says why there is no upstream, and what a shell would exit with."""

    def __init__(self, line: str, exit_code: int) -> None:
        super().__init__(line)
        self.exit_code = exit_code


def start(order: Spawn, stdio: tuple[int, int, int], keep_ignored: tuple[int, ...]) -> int:
    """Starts a program in a session of its own that dies with us; gives its pid.

    Raises CannotStart.
    """
    # Closed by a successful exec, so that end of file says: it runs.
    problem, tell_problem = os.pipe()
    warden = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(order, stdio, keep_ignored, warden, tell_problem)
    os.close(tell_problem)
    told = os.read(problem, 64)
    os.close(problem)
    if not told:
        return pid
    os.waitpid(pid, 0)
    found = abs(int(told)) not in _NO_SUCH_PROGRAM
    raise CannotStart(_explain(order, int(told)), 126 if found else 127)


def _become(
    order: Spawn,
    stdio: tuple[int, int, int],
    keep_ignored: tuple[int, ...],
    warden: int,
    tell_problem: int,
) -> None:
    """Never returns: the program runs, or this copy of the warden ends."""
    problem = errno.EIO
    try:
        os.setsid()
        die_with_parent(posix.SIGKILL, warden)
        for number, fd in enumerate(stdio):
            os.dup2(fd, number)
        restore_defaults(keep_ignored)
        if order.cwd:
            os.chdir(order.cwd)
        problem = _execute(order.argv, order.env)
    except OSError as error:
        problem = -(error.errno or errno.EIO)
    finally:
        # Whatever went wrong: two wardens would be worse than no upstream.
        os.write(tell_problem, b"%d" % problem)
        os._exit(127)


def _execute(argv: list[bytes], env: dict[bytes, bytes]) -> int:
    """Tries each place of the upstream's own PATH; gives the error that tells most."""
    worst = errno.ENOENT
    for path in _candidates(argv[0], env):
        try:
            os.execve(path, argv, env)
        except OSError as error:
            if error.errno not in _NO_SUCH_PROGRAM:
                worst = error.errno or errno.EIO
    return worst


def _candidates(program: bytes, env: dict[bytes, bytes]) -> list[bytes]:
    if b"/" in program:
        return [program]
    places = env.get(b"PATH", os.fsencode(os.defpath)).split(b":")
    return [os.path.join(place or b".", program) for place in places]


def _explain(order: Spawn, problem: int) -> str:
    """One line; a negative problem came before exec, so it is the directory's."""
    place = f" in `{_printable(order.cwd)}`" if problem < 0 else ""
    reason = os.strerror(abs(problem)).lower()
    return f"cannot start `{_printable(order.argv[0])}`{place}: {reason}"


def _printable(name: bytes) -> str:
    return "".join(c if c.isprintable() else "?" for c in os.fsdecode(name))
