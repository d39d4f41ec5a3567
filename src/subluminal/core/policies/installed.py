"""How policies find installed packs. The kernel is loaded only if a policy asks a pack."""

from typing import TYPE_CHECKING

from subluminal.policy.packs import KnownPack, UnknownPack
from subluminal.policy.visit import Call

if TYPE_CHECKING:
    from subluminal.core.intents.judging import CallJudge


def find_installed(name: str) -> KnownPack | UnknownPack:
    """Finds an installed pack; a `policy.packs.FindPack`."""
    from subluminal.core.intents.index import find_pack

    return find_pack(name)


def installed_judge(call: Call, run_id: str, wall_ms: int) -> "CallJudge":
    """Returns whom `kernel` rules ask about a call; a `policy.visit.JudgeOf`."""
    from subluminal.core.intents.judging import CallJudge

    return CallJudge(call, run_id, wall_ms)
