"""Subluminal: a semantic firewall and flight recorder for AI agents' tool calls.

Importing this package loads nothing else (fast-start): the shim pays for every import. The names
for programs are loaded when they are used.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subluminal.sdk import (
        Blocked,
        Guard,
        PolicyError,
        Refused,
        Rejected,
        RunTerminated,
        Throttled,
    )

__all__ = [
    "Blocked",
    "Guard",
    "PolicyError",
    "Refused",
    "Rejected",
    "RunTerminated",
    "Throttled",
    "__version__",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("subluminal.sdk"), name)
