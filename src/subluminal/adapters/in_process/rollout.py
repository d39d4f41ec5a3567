"""Staged rollout: the code that a pack is to replace decides, and the pack is compared or left out.

`off`      that code decides; the pack is not asked
`shadow`   that code decides; the pack is asked too, and both answers are on record
`enforce`  the pack decides; that code is not asked

Stops and policies hold in every stage.
"""

from collections.abc import Callable
from typing import NamedTuple

from subluminal.contracts.intents import Judgement, KernelDecision
from subluminal.contracts.vocabulary import ReasonCode
from subluminal.core.intents.outcomes import AskedPack, refusal_in_contract
from subluminal.kernel.decisions import DECISIONS, Decision
from subluminal.kernel.judging import check_decision
from subluminal.kernel.refusals import told
from subluminal.policy.refusing import blocked

Legacy = Callable[[], bool | Decision]
"""The code to be replaced: whether it executes the intent, or its decision as the kernel has it."""

_SAYS_NO = "the code that the pack is to replace refuses this call"
_FAILED = "the code that the pack is to replace failed"


class Failed(NamedTuple):
    """The replaced code raised, or returned a decision that is none."""

    why: str


def ask_legacy(legacy: Legacy) -> bool | Decision | Failed:
    """Asks the replaced code. True, and nothing else that is like it, executes the intent."""
    try:
        said = legacy()
        return check_decision(said) if isinstance(said, DECISIONS) else said is True
    except Exception as error:  # noqa: BLE001 - whatever it does, it is refused and on record
        return Failed(f"{_FAILED}: {type(error).__name__}: {told(error)}")


def legacy_judgement(
    said: bool | Decision | Failed, pack: AskedPack, kernel: KernelDecision | None
) -> Judgement:
    """Returns the answer of the replaced code; `kernel` is what the pack would have said."""
    if isinstance(said, DECISIONS):
        refusal, requirement = refusal_in_contract(pack, said)
        return Judgement(refusal=refusal, requirement=requirement, kernel=kernel)
    why = said.why if isinstance(said, Failed) else _SAYS_NO
    refusal = None if said is True else blocked(ReasonCode.LEGACY_REFUSED, why)
    return Judgement(refusal=refusal, requirement=None, kernel=kernel)
