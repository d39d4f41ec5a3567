"""Tells the program about errors: of its own callbacks and plugins, and bugs of Subluminal.

Nothing that happens here changes a decision.
"""

import inspect
from collections.abc import Callable

from subluminal.adapters.in_process.guarding.steps import in_thread, start_thread

OnError = Callable[[BaseException, str], object]
"""Gets an error, and where it happened in a few words."""


class Reports:
    """Calls `on_error` of a guard, if it has one."""

    def __init__(self, on_error: OnError | None) -> None:
        self._on_error = on_error

    def tell(self, error: BaseException, where: str) -> None:
        """Reports an error. What `on_error` raises itself is dropped."""
        if self._on_error is None:
            return
        try:
            found = self._on_error(error, where)
            if inspect.isawaitable(found):
                start_thread(in_thread, found)
        except Exception:  # noqa: BLE001 - nobody is left who could be told
            return

    def bug(self, bug: Exception) -> None:
        """Reports a bug of Subluminal."""
        self.tell(bug, "a bug in subluminal")
