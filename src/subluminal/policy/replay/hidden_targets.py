"""Targets that the record hides: what rules about them could have found.

A rule tests targets as a whole. So for each test it is enough to try both answers.
"""

from collections.abc import Callable
from typing import Any

from subluminal.contracts.targets import Targets
from subluminal.policy.evaluation import Evaluation
from subluminal.policy.replay.hidden_args import MAX_TRIES
from subluminal.policy.targets import HiddenTargets

EvaluateAll = Callable[[HiddenTargets], list[Evaluation] | None]
"""Evaluates a call for every possibility of its arguments; None if there are too many."""


ReadLater = Callable[[str, str, dict[str, Any]], tuple[Targets, bool] | None]
"""Reads targets from the recorded (server_name, tool_name, args).

Returns them and whether they are complete; if not, paths are not known. None if nothing is."""


def target_evaluations(
    evaluate: EvaluateAll, known: Targets | None = None
) -> list[Evaluation] | None:
    """Evaluates every combination of answers; None if there are more than MAX_TRIES.

    `known` is what the targets are known to be, but for paths.
    """
    found: list[Evaluation] = []
    waiting: list[dict[bytes, bool]] = [{}]
    while waiting:
        if len(found) + len(waiting) > MAX_TRIES:
            return None
        chosen = waiting.pop()
        hidden = HiddenTargets(chosen=chosen, known=known)
        evaluations = evaluate(hidden)
        if evaluations is None:
            return None
        if not hidden.asked:
            found += evaluations
            continue
        key = min(hidden.asked)
        waiting += [{**chosen, key: answer} for answer in (True, False)]
    return found
