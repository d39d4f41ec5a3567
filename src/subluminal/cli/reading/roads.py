"""What the roads to events have in common: where ledgerd answers, and that it may stop."""

import os

from subluminal.config.places import Places


class NotRunning(Exception):
    """There is no ledgerd to ask."""


class StreamEnded(Exception):
    """The daemon is gone, or says goodbye."""


def socket_path(places: Places) -> str:
    """Where ledgerd answers. As in its own `instance`, without loading it."""
    return os.path.join(places.runtime_dir, "ledgerd.sock")
