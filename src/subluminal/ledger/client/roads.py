"""What the roads to events have in common: where ledgerd answers, and that it may stop."""

import os

from subluminal.config.places import Places
from subluminal.errors import SubluminalError


class NotRunning(SubluminalError):
    """There is no ledgerd to ask, or it does not answer."""

    def __init__(self) -> None:
        super().__init__("ledgerd does not answer", hint="`sub doctor` tells more")


class StreamEnded(Exception):
    """The daemon is gone, or says goodbye."""


def socket_path(places: Places) -> str:
    """Where ledgerd answers. As in its own `instance`, without loading it."""
    return os.path.join(places.runtime_dir, "ledgerd.sock")
