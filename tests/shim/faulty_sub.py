"""`sub` with a bug of ours planted in it: `python faulty_sub.py WHERE shim stdio …`.

The tool `boom` meets the bug, everything else does not.
"""

import sys

from subluminal.adapters.mcp import calls
from subluminal.adapters.mcp_stdio import shim
from subluminal.cli.main import main
from subluminal.core.records import previews
from subluminal.policy import evaluation

WHERE = sys.argv.pop(1)


def decide(self, call, *args, **kwargs):
    if call.tool_name == "boom":
        raise KeyError("planted")
    return original(self, call, *args, **kwargs)


def preview(self, *args):
    if "boom" in repr(args):
        raise KeyError("planted")
    return original(self, *args)


def replied(self, reply):
    if not self.planted:
        type(self).planted = True
        raise KeyError("planted")
    return original(self, reply)


def housekeep(self, now_ms):
    if self._calls.open:
        raise KeyError("planted")
    return original(self, now_ms)


if WHERE == "deciding":
    original, evaluation.Engine.evaluate = evaluation.Engine.evaluate, decide
elif WHERE == "recording":
    original, previews.Previewer.args = previews.Previewer.args, preview
elif WHERE == "accounting":
    calls.Calls.planted = False
    original, calls.Calls.replied = calls.Calls.replied, replied
elif WHERE == "looping":
    original, shim.Shim._housekeep = shim.Shim._housekeep, housekeep
sys.exit(main())
