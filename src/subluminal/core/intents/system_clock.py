"""The clock of this machine, as the kernel asks it."""

import time

from subluminal.clock import now, rfc3339


class SystemClock:
    """A `kernel.observing.Clock`."""

    def now_iso(self) -> str:
        """Returns the time of day."""
        return rfc3339(now().wall_ms)

    def mono_ms(self) -> float:
        """Returns milliseconds of the monotonic clock."""
        return time.monotonic_ns() / 1_000_000
