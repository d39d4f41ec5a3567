"""What the billing agents of this directory share: two tools, a policy, and a scripted model.

The model knows only its task and what its tools tell it, as a language model does. It follows the
arguments that a refusal suggests.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from subluminal import Guard, RunTerminated

TASK = "refund A-7 250, refund B-2 20"
POLICY = Path(__file__).with_name("billing.yaml")


def refund(order: str, amount: int) -> str:
    """Pays money back.

    Args:
        order: The order to refund.
        amount: How much, in whole euros.
    """
    if order == "broken":
        raise RuntimeError("no such order")
    return f"refunded {amount} for {order}"


def close_account(order: str) -> str:
    """Closes the account of a customer.

    Args:
        order: An order of the customer.
    """
    return f"closed the account of {order}"


class Call(NamedTuple):
    """A tool call that the model wants."""

    tool: str
    args: dict[str, Any]


def first_calls(task: str) -> list[Call]:
    """What the model does first."""
    found = []
    for part in task.split(","):
        words = part.split()
        if words[0] == "refund":
            found.append(Call("refund", {"order": words[1], "amount": int(words[2])}))
        else:
            found.append(Call(words[0], {"order": words[1]} if words[1:] else {}))
    return found


def next_calls(results: Iterable[tuple[str, str]]) -> list[Call]:
    """What the model does when it is shown results: tool and text of each. Nothing: it is done."""
    found = []
    for tool, text in results:
        suggested = re.search(r"Suggested arguments: (\{.*?\})", text.replace('\\"', '"'))
        if suggested:
            found.append(Call(tool, json.loads(suggested[1])))
    return found


def run(
    answer: Callable[[Guard, str, str], str], refusals: Literal["raise", "return"] = "raise"
) -> None:
    """Runs an agent: `python with_….py [TASK [invoke|async|stream|astream]]`."""
    task, how = [*sys.argv[1:], *(TASK, "invoke")[len(sys.argv) - 1 :]][:2]
    with Guard(agent_id="billing", policy=POLICY, refusals=refusals) as guard:
        try:
            print(answer(guard, task, how))
        except RunTerminated as ended:
            print(f"The run is over: {ended}")
