"""Starts a program from the warden: fork, own session, exec; and explains why a start failed."""

import errno
import os

from subluminal.supervise.signals import posix, restore_defaults
from subluminal.supervise.wire import Spawn
from subluminal.system.adoption import die_with_parent

_NO_SUCH_PROGRAM = (errno.ENOENT, errno.ENOTDIR)


class CannotStart(Exception):
    """The program did not start. `exit_code` is what a shell would return: 126 or 127."""

    def __init__(self, line: str, exit_code: int) -> None:
        super().__init__(line)
        self.exit_code = exit_code


def start(order: Spawn, stdio: tuple[int, int, int], keep_ignored: tuple[int, ...]) -> int:
    """Starts a program in a session of its own that dies with us. Returns its pid.

    Raises CannotStart.
    """
    # A successful exec closes the pipe, so end of file means that the program runs.
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
    """Becomes the program, or exits. Never returns."""
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
        # Exit whatever went wrong: a second warden would be worse than no upstream.
        os.write(tell_problem, b"%d" % problem)
        os._exit(127)


def _execute(argv: list[bytes], env: dict[bytes, bytes]) -> int:
    """Tries each directory of the upstream's own PATH. Returns the most telling error number."""
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
    """Says in one line why the start failed. A negative error number is the working directory's."""
    place = f" in `{_printable(order.cwd)}`" if problem < 0 else ""
    reason = os.strerror(abs(problem)).lower()
    return f"cannot start `{_printable(order.argv[0])}`{place}: {reason}"


def _printable(name: bytes) -> str:
    return "".join(c if c.isprintable() else "?" for c in os.fsdecode(name))
