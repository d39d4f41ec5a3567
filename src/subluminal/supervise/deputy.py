"""The loop of the deputy, the warden's parent: it ends the tree if the warden cannot.

An upstream can stop its warden (SIGSTOP), and somebody can kill warden and shim at the same moment.
The deputy is a subreaper above the warden, so the processes of a dead warden are its own.

    the shim died                        let the warden go on (SIGCONT), give it 3 s
    3 s later the tree is not gone       kill the tree below the warden, again and again
    3 s later it is still not gone       kill the warden
    the warden died                      kill everything that is left, exit

While the shim lives, the deputy only waits: a shim that ends in order, or that loses its warden,
ends the tree itself. If the deputy is killed, the warden ends the tree.

The warden writes its news to a pipe: the upstream's pid, then GONE when the whole tree is gone. The
pipe's end is the warden's death. Nothing in this file runs in the shim.
"""

import os
import select
import time

from subluminal.supervise.signals import posix
from subluminal.supervise.tree import Kin, kill_all, signal_process, sweep
from subluminal.system.adoption import maybe_watch
from subluminal.system.process import exists

GONE = b"gone"
PATIENCE_S = 3.0
"""Time for the warden to end the tree after the shim's death: it needs 0.5 s on an idle machine."""
_AFTER_DEATH_S = 15.0
"""Time for the warden to exit after the tree is gone; its last program may take 10 s."""
_AGAIN_MS = 50
_LOOK_AT_PARENT_MS = 1_000
"""Without a pidfd: how often to look whether the shim still is our parent."""
_SWEEP_MS = 10_000


class DeputyLoop:
    """The state of one deputy."""

    def __init__(
        self,
        warden: int,
        *,
        shim: int,
        client: int,
        news: int,
        life: int,
        mark: str,
        adopts: bool,
    ) -> None:
        self._warden = warden
        self._shim = shim
        self._client = client
        self._news = news
        self._tree = Kin(warden, adopts=adopts, mark=mark)
        self._all = Kin(os.getpid(), adopts=adopts, mark=mark)
        self._told = b""
        self._warden_is_alive = True
        self._shim_died_at: float | None = None
        self._poll = select.poll()
        self._poll.register(news, select.POLLIN)
        self._life = life
        self._poll.register(life, select.POLLIN)
        self._shim_watch = maybe_watch(shim)
        if self._shim_watch is not None:
            self._poll.register(self._shim_watch, select.POLLIN)

    def run(self) -> None:
        """Runs until the warden is dead, then ends everything that it left."""
        while self._warden_is_alive:
            self._wait()
            if self._shim_died_at is not None:
                self._press(time.monotonic() - self._shim_died_at)
        sweep(self._all, timeout_ms=_SWEEP_MS)

    def _wait(self) -> None:
        timeout_ms = None if self._shim_watch is not None else _LOOK_AT_PARENT_MS
        if self._shim_died_at is not None:
            timeout_ms = _AGAIN_MS
        ready = {fd for fd, _ in self._poll.poll(timeout_ms)}
        if self._news in ready:
            self._read_news()
        if self._shim_watch is None and not exists(self._client):
            # The upstream may have stopped the shim. On Linux the kernel does this.
            signal_process(self._shim, posix.SIGCONT)
        if self._shim_died_at is None and (ready - {self._news} or os.getppid() != self._shim):
            self._shim_died_at = time.monotonic()
            self._poll.unregister(self._life)
            if self._shim_watch is not None:
                self._poll.unregister(self._shim_watch)

    def _read_news(self) -> None:
        data = os.read(self._news, 64)
        self._told += data
        self._warden_is_alive = bool(data)
        upstream = self._told.split(b"\n")[0]
        if upstream.isdigit():
            self._tree.group = self._all.group = int(upstream)

    def _press(self, waited_s: float) -> None:
        """Makes sure that the tree ends after the shim's death, and the warden soon after it."""
        signal_process(self._warden, posix.SIGCONT)
        if GONE in self._told:
            if waited_s > _AFTER_DEATH_S:
                signal_process(self._warden, posix.SIGKILL)
        elif waited_s > 2 * PATIENCE_S:
            signal_process(self._warden, posix.SIGKILL)
        elif waited_s > PATIENCE_S:
            kill_all(self._tree)
