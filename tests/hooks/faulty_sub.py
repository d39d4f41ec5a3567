"""`sub` with a bug of ours planted in it: `python faulty_sub.py WHERE hook …`.

`session`: while an event is handled. `start`: while the hook shim starts. `front`: in the front.
`late`: no bug, but the front's time is up at the very moment at which it has its answer.
"""

import signal
import sys

from subluminal.adapters.agent_hooks import front
from subluminal.cli.main import main

WHERE = sys.argv.pop(1)


def fail(*_args: object, **_options: object) -> None:
    raise KeyError("planted")


if WHERE == "session":
    from subluminal.adapters.agent_hooks.session import Session

    Session.handle = fail
elif WHERE == "start":
    from subluminal.adapters.agent_hooks import shim

    shim.client_pid = fail
elif WHERE == "front":
    front.encode_header = fail
elif WHERE == "late":
    set_timer = front.posix.setitimer

    def ring(which: int, seconds: float) -> None:
        set_timer(which, seconds)
        if not seconds:
            signal.raise_signal(signal.SIGALRM)

    front.posix.setitimer = ring

raise SystemExit(main())
