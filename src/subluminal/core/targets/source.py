"""Where the core gets a call's targets from: the settings in force, and the reader if a rule asks.

Light on purpose: the reader and its parser are loaded with the first call that needs them.
"""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from subluminal.config.settings import Settings, TargetSettings
from subluminal.contracts.call import ToolCall
from subluminal.contracts.targets import Targets

if TYPE_CHECKING:
    from subluminal.core.targets.table import Table, Tool

Declared = TargetSettings | Callable[[dict[str, Any]], Mapping[str, Any]]
"""What a program says about the targets of its tool: which arguments they are, or a function that
takes the arguments and returns the values under the names that settings have (`path`, `url`, …)."""


class TargetSource:
    """Reads the targets of calls under the settings in force. All runs of a host share it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._table: Table | None = None
        self._declared: dict[tuple[str, str], Declared] = {}

    def declare(self, server_name: str, tool_name: str, declared: Declared) -> None:
        """Adds what a program says about one of its tools to what the settings say."""
        self._declared[server_name, tool_name] = declared

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
        server, tool, args = call.server_name, call.tool_name, call.args
        declared = self._declared.get((server, tool))
        if declared is not None:
            added, further = _tool_of(declared, args)
            known = table.get(server, {}).get(tool)
            if known is not None and not added.unreadable:
                added = known._replace(arguments=known.arguments + added.arguments)
            table, args = {server: {tool: added}}, {**args, **further}
        return targets_of(server, tool, args, cwd=cwd, table=table)


def _tool_of(declared: Declared, args: dict[str, Any]) -> "tuple[Tool, dict[str, Any]]":
    """Returns a tool as a program declares it, and further arguments that its function returns."""
    from subluminal.core.targets.table import Tool, tool_of

    if isinstance(declared, TargetSettings):
        return tool_of(declared), {}
    try:
        said = dict(declared(args))
        access = said.pop("access", None)
        names = {kind: f"targets.{kind}" for kind in said}
        tool = tool_of(TargetSettings(**names, access=access))
    except Exception as error:  # noqa: BLE001 - the program's own code
        why = f"the program cannot say what the call touches: {type(error).__name__}"
        return Tool(unreadable=why), {}
    values = (list(each) if isinstance(each, tuple) else each for each in said.values())
    return tool, dict(zip(names.values(), values, strict=True))
