"""`sub` with a bug of ours planted in it: `python faulty_sub.py WHERE hook …`.

`session`: while an event is handled. `start`: while the hook shim starts. `front`: in the front.
"""

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

raise SystemExit(main())
