"""Scenarios for the example agent of any framework, with a guard and rules of their own."""

import importlib
import threading
from typing import Any

from subluminal import Guard, Refused


def under(framework: str, task: str, how: str, policy: Any, options: Any) -> None:
    """Lets the agent do a task under a policy, with options of the guard."""
    answer = importlib.import_module(f"with_{framework}").answer
    with Guard(agent_id="billing", policy=policy, **options) as guard:
        print(answer(guard, task, how))


def approved(framework: str, task: str, how: str, policy: Any, options: Any, together: int) -> None:
    """A callback says yes to order A-7 only, once as many calls as `together` ask at a time."""
    barrier = threading.Barrier(together, timeout=60)

    def ask(refused: Refused) -> bool:
        barrier.wait()
        assert refused.call is not None
        assert refused.call.args is not None
        return bool(refused.call.args["order"] == "A-7")

    under(framework, task, how, policy, {"approvals": ask, **options})
