"""Where the core gets a call's targets from: the settings in force, and the reader if a rule asks.

Light on purpose: the reader and its parser are loaded with the first call that needs them.
"""

import os
from typing import TYPE_CHECKING

from subluminal.config.settings import Settings
from subluminal.contracts.call import ToolCall
from subluminal.contracts.targets import Targets

if TYPE_CHECKING:
    from subluminal.core.targets.table import Table


class TargetSource:
    """Reads the targets of calls under the settings in force. All runs of a host share it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._table: Table | None = None

    def adopt(self, settings: Settings) -> None:
        """Puts new settings into force."""
        self._settings, self._table = settings, None

    def read(self, call: ToolCall) -> Targets | None:
        """Returns what a call touches; None if its arguments were too large to inspect."""
        from subluminal.core.targets.reading import targets_of
        from subluminal.core.targets.table import table_for

        if call.args is None:
            return None
        table = self._table
        if table is None:
            table = self._table = table_for(self._settings)
        cwd = os.getcwd() if call.cwd is None else call.cwd
        return targets_of(call.server_name, call.tool_name, call.args, cwd=cwd, table=table)
