"""Contents that the record hides: what rules about texts and data could have found.

A rule tests contents as a whole. So for each test it is enough to try both answers.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from subluminal.contracts.vocabulary import DataClass
from subluminal.policy.contents import Hidden, HiddenData, HiddenTexts
from subluminal.policy.evaluation import Call, Engine, Evaluation
from subluminal.policy.replay.hidden_args import MAX_TRIES, PartialArgs

ReadData = Callable[[dict[str, Any]], frozenset[DataClass]]
"""Returns the classes of data in arguments."""
EvaluateAll = Callable[[Call], list[Evaluation] | None]
"""Evaluates a call for every possibility of the rest; None if there are too many."""


def content_evaluations(
    evaluate: EvaluateAll, asked: Call, engine: Engine, read_data: ReadData | None
) -> list[Evaluation] | None:
    """Evaluates a call for everything that its contents could have been.

    Returns None if there are more than MAX_TRIES possibilities.
    """
    args, wants_data = asked.args, engine.needs_data(asked)
    has_tests = bool(engine.text_tests(asked))
    if args is None or not (wants_data or has_tests):
        return evaluate(asked)
    is_partial = isinstance(args, PartialArgs)
    if wants_data and read_data is not None and not is_partial:
        asked, wants_data = replace(asked, data=read_data(args)), False
    hides_texts = has_tests and is_partial
    if not (wants_data or hides_texts):
        return evaluate(asked)
    found: list[Evaluation] = []
    waiting: list[dict[bytes, bool]] = [{}]
    while waiting:
        if len(found) + len(waiting) > MAX_TRIES:
            return None
        hidden = Hidden(waiting.pop())
        evaluations = evaluate(_hiding(asked, hidden, data=wants_data, texts=hides_texts))
        if evaluations is None:
            return None
        if not hidden.asked:
            found += evaluations
            continue
        key = min(hidden.asked)
        waiting += [{**hidden.chosen, key: answer} for answer in (True, False)]
    return found


def _hiding(asked: Call, hidden: Hidden, *, data: bool, texts: bool) -> Call:
    asked = replace(asked, data=HiddenData.of(hidden)) if data else asked
    return replace(asked, texts=HiddenTexts(hidden)) if texts else asked
