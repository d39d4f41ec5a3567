"""A tiny shim for the tests: relays bytes, obeys signals, writes the warden's reports to a file.

Run as `python driver.py SRC OPTIONS`; imports nothing else before the warden is forked.
"""

import sys

sys.path.insert(0, sys.argv[1])
from subluminal.supervise import WardenHandle, become_subreaper

warden = WardenHandle.fork()
loaded_before_fork = sorted(sys.modules)

import json  # noqa: E402
import os  # noqa: E402
import select  # noqa: E402
import signal  # noqa: E402

options = json.loads(sys.argv[2])
record_fd = os.open(options["record"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def record(kind, **fields):
    """Appends one line to the file that the test reads."""
    os.write(record_fd, (json.dumps({"kind": kind, **fields}) + "\n").encode())


def record_reports(reports):
    for report in reports:
        record(
            report.kind,
            pid=report.pid,
            exit_code=report.exit_code,
            signal=report.signal,
            detail=report.detail,
        )


def more_arguments():
    """Makes extra arguments here, because one of our own arguments could not hold them."""
    return [f"argument {n:06}" for n in range(options.get("more", 0))]


def wake_on_signals():
    wake, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return wake


class Relay:
    """The loop of the shim: relays bytes both ways, stops at the end of its input or at a signal."""

    def __init__(self, wake):
        self.wake = wake
        self.poll = select.poll()
        self.relays = {0: warden.stdin_fd, warden.stdout_fd: 1, warden.stderr_fd: 2}
        if "unread_stderr" in options:
            del self.relays[warden.stderr_fd]
        for fd in (*self.relays, warden.report_fd, wake):
            self.poll.register(fd, select.POLLIN)
        self.exited = None
        self.stopping = False

    def run(self):
        """Runs until the warden is done or dead. Returns the report of the upstream's end."""
        while not warden.closed:
            ready = [fd for fd, _ in self.poll.poll(50 if self.stopping else None)]
            warden.hurry()
            stop = self.obey_signals() if self.wake in ready else False
            for fd in ready:
                if fd in self.relays and not self.copy(fd):
                    stop = stop or fd == 0
            reports = warden.read_reports()
            record_reports(reports)
            self.exited = next((r for r in reports if r.kind in ("exited", "failed")), self.exited)
            if (stop or self.exited) and not self.stopping:
                self.stop()
        return self.exited

    def obey_signals(self):
        received = os.read(self.wake, 100)
        if "forward" not in options:
            return True
        for number in received:
            warden.signal(number)
        return False

    def copy(self, fd):
        data = os.read(fd, 65536)
        if data:
            os.write(self.relays[fd], data)
        else:
            self.poll.register(fd, 0)
            self.poll.unregister(fd)
        return data

    def stop(self):
        self.stopping = True
        del self.relays[0]
        os.close(warden.stdin_fd)
        self.poll.register(0, 0)
        self.poll.unregister(0)
        warden.stop(grace_ms=options.get("stop_grace_ms"))
        record("stopping")


def main():
    become_subreaper()
    wake = wake_on_signals()
    env = {**os.environ, **options.get("env", {})}
    if "die_before_spawn" in options:
        os.kill(os.getpid(), signal.SIGKILL)
    record("deputy", pid=warden.pid, modules=loaded_before_fork)
    warden.spawn(
        options["argv"] + more_arguments(),
        env,
        cwd=options.get("cwd"),
        grace_ms=options.get("grace_ms", 2000),
        after_death=options.get("after_death"),
    )
    if "leak_orders" in options and os.fork() == 0:
        signal.pause()
    exited = Relay(wake).run()
    if warden.lost:
        record_reports(warden.sweep())
        record("swept")
    from subluminal.system.processes import descendants

    record("left", pids=[p.pid for p in descendants(os.getpid())])
    if exited is None:
        return 70
    return 128 + exited.signal if exited.signal else exited.exit_code or 0


os._exit(main())
