"""What the events of each client look like, and which answers it obeys: one module for each client.

What one client takes as a refusal another ignores, and runs the call. So no two of them share an
answer, and every form was tried with the real client (`tests/e2e`).
"""

from importlib import import_module

from subluminal.adapters.agent_hooks.clients.description import HookClient


def client_named(name: str) -> HookClient:
    """Returns a client by its name on the command line; loads its module only."""
    found = import_module(f"{__name__}.{name}").CLIENT
    assert isinstance(found, HookClient)
    return found
