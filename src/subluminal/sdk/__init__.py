"""The product inside a Python agent.

    from subluminal import Guard

    guard = Guard(agent_id="billing")

    @guard.tool
    def refund(order: str, amount: int) -> str: ...

`guard` has the door for functions, `kernel` the one for packs. Both have the same runs,
policies, stops, approvals and ledger as every other door. Names are loaded when they are used.
"""

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subluminal.sdk.guard import (
        Blocked,
        Guard,
        PolicyError,
        Refused,
        Rejected,
        RunTerminated,
        Throttled,
    )
    from subluminal.sdk.kernel import Done, KernelDoor, NotExecuted, install_pack, open_kernel

__all__ = [
    "Blocked",
    "Done",
    "Guard",
    "KernelDoor",
    "NotExecuted",
    "PolicyError",
    "Refused",
    "Rejected",
    "RunTerminated",
    "Throttled",
    "install_pack",
    "open_kernel",
]
_OF_THE_KERNEL = ("Done", "KernelDoor", "NotExecuted", "install_pack", "open_kernel")


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "kernel" if name in _OF_THE_KERNEL else "guard"
    return getattr(import_module(f"{__name__}.{module}"), name)
