"""Packs in a replay: they are asked again, if they are the recorded ones and know all arguments."""

from collections.abc import Mapping
from typing import Any

from subluminal.contracts.intents import Judge, Judgement
from subluminal.contracts.vocabulary import Taint
from subluminal.policy.replay.comparing import Doubt
from subluminal.policy.replay.hidden_args import PartialArgs
from subluminal.policy.visit import PackMissing


class Unanswered(Exception):
    """A pack cannot be asked again. `doubt` says why."""

    def __init__(self, doubt: Doubt) -> None:
        super().__init__(doubt)
        self.doubt = doubt


class AskedAgain:
    """A judge that raises Unanswered where the record and this machine do not tell enough."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def __call__(
        self, layer: str, rule: Mapping[str, Any], args: dict[str, Any], level: Taint
    ) -> Judgement:
        """Asks the pack."""
        if isinstance(args, PartialArgs):
            raise Unanswered(Doubt.ARGUMENTS)
        try:
            return self._judge(layer, rule, args, level)
        except PackMissing:
            raise Unanswered(Doubt.PACK) from None
